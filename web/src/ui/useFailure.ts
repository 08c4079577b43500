/** What kept something from being shown, in the person's language; a missing right is called so. */
import { useCallback } from 'react'
import { useWords } from '../i18n'
import { KubeError } from '../kube'
import { useSaid } from '../why/useSaid'
import { words } from './words'

export function useFailure(): (error: unknown) => string {
  const w = useWords(words)
  const said = useSaid()
  return useCallback((error) => (error instanceof KubeError && error.forbidden ? w('forbidden', { message: said.error(error) }) : said.error(error)), [w, said])
}
