/**
 * Addresses that bring a sign-in: the link of `danlu up`, and the way back from an identity provider. What they bring leaves
 * the address before anything else is done: addresses are shown, remembered, and copied.
 */
import { finishOidc, OIDC_CALLBACK, signInWithLink, type Session } from '../kube'

interface Brought {
  link?: string
  oidc?: Record<string, string>
}

let brought: Brought = {}

/** Before the router reads the address. */
export function readAddress(): void {
  const link = new URLSearchParams(location.hash.slice(1)).get('token')
  if (link !== null) {
    brought = { link }
    history.replaceState(null, '', location.pathname + location.search)
  } else if (location.pathname === OIDC_CALLBACK && location.search) {
    brought = { oidc: Object.fromEntries(new URLSearchParams(location.search)) }
    history.replaceState(null, '', OIDC_CALLBACK)
  }
}

/** Signs in with what the address brought. Raises when that was refused. */
export async function arrive(): Promise<Session | undefined> {
  const { link, oidc } = brought
  brought = {}
  if (link !== undefined) return await signInWithLink(link)
  if (oidc !== undefined) {
    location.replace(await finishOidc(oidc))
    return await new Promise(() => undefined) // another page is on its way
  }
  return undefined
}

/** Whether a link was to sign in: what is said of it is not what is said of a token. */
export const broughtLink = (): boolean => brought.link !== undefined
