/** Who is signed in, and how one signs in. */
import { requestJson, setCsrf } from './http'
import { KubeError } from './errors'

export interface Session {
  user: { name: string; groups: string[] }
  csrf: string
  appsOrigin?: string
  signIn?: SignInWay[]
  version: string
  target: 'embedded' | 'cluster'
  /** Danlu's own image: what small pods of the console run */
  image?: string
}

export type SignInWay = 'token' | 'oidc'

/** The session, or the ways to sign in. */
export async function readSession(): Promise<Session | SignInWay[]> {
  const response = await fetch('/console/session', { credentials: 'same-origin', headers: { Accept: 'application/json' } })
  const body = (await response.json().catch(() => ({}))) as Partial<Session>
  if (response.status === 401) return body.signIn ?? ['token']
  if (!response.ok) throw new KubeError(response.status, response.statusText, (body as { message?: string }).message ?? `HTTP ${response.status}`)
  setCsrf(body.csrf ?? '')
  return body as Session
}

export const signIn = (token: string): Promise<unknown> => requestJson('/console/sign-in', { method: 'POST', body: { token } })

export const signOut = (): Promise<unknown> => requestJson('/console/sign-out', { method: 'POST', body: {} })

export const oidcStart = (next: string): string => `/console/oidc/start?next=${encodeURIComponent(next)}`

export type AppKind = 'notebook' | 'tensorboard' | 'service'

/** The address of a notebook, TensorBoard or service for a new tab. */
export const openApp = (namespace: string, kind: AppKind, name: string): Promise<{ url: string }> =>
  requestJson('/console/apps/open', { method: 'POST', body: { namespace, kind, name } })
