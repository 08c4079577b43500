import type { Description } from './description'

/** Labels that find the pods; also those of a namesake that is just going, so owners are looked at too. */
export const podSelector = (said: Description, name: string): string | undefined => (said.pods?.label ? `${said.pods.label}=${name}` : undefined)
