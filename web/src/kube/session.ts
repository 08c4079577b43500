/** Who is signed in, and how one signs in. */
import { KubeError, Unreachable } from './errors'
import { requestJson } from './http'
import type { KubeObject } from './types'
import { forgetProof, keepProof, leaveWithProof, newProof, proof, PROOF_HEADER, returnWithProof } from './proof'

export interface Session {
  user: { name: string; groups: string[] }
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
  const headers = { Accept: 'application/json', [PROOF_HEADER]: proof() }
  const response = await fetch('/console/session', { credentials: 'same-origin', redirect: 'error', headers }).catch(() => {
    throw new Unreachable()
  })
  const body = (await response.json().catch(() => ({}))) as Partial<Session>
  if (response.status === 401) return body.signIn ?? ['token']
  if (!response.ok) throw new KubeError(response.status, response.statusText, (body as { message?: string }).message ?? `HTTP ${response.status}`)
  return body as Session
}

/** The new secret counts when the server has taken it: until then the sign-in of before holds. */
async function signInWith(body: { token: string } | { link: string }): Promise<Session> {
  const secret = newProof()
  const session = await requestJson<Session>('/console/sign-in', { method: 'POST', body, proof: secret })
  keepProof(secret)
  return session
}

export const signIn = (token: string): Promise<Session> => signInWith({ token })

export const signInWithLink = (link: string): Promise<Session> => signInWith({ link })

export const signOut = (): Promise<unknown> => requestJson('/console/sign-out', { method: 'POST', body: {} }).finally(forgetProof)

/** Leaves for the identity provider, which leads back to OIDC_CALLBACK. */
export async function startOidc(next: string): Promise<void> {
  const secret = newProof()
  const { address } = await requestJson<{ address: string }>('/console/oidc/start', { method: 'POST', body: { next }, proof: secret })
  leaveWithProof(secret)
  location.href = address
}

export const OIDC_CALLBACK = '/console/oidc/callback'

/** `brought`: the query with which the provider led back. The answer is the page that was asked for before. */
export async function finishOidc(brought: Record<string, string>): Promise<string> {
  const secret = returnWithProof()
  const { next } = await requestJson<{ next: string }>('/console/oidc/finish', { method: 'POST', body: brought, proof: secret })
  keepProof(secret)
  return next
}

/** The address of an object's page, or a service's, for a new tab; the kind as it is typed after `kubectl get`. */
export const openApp = (namespace: string, kind: string, name: string): Promise<{ url: string }> =>
  requestJson('/console/apps/open', { method: 'POST', body: { namespace, kind, name } })

/** The same of a path below the apps' origin. */
export const openAppAt = (path: string): Promise<{ url: string }> => requestJson('/console/apps/open', { method: 'POST', body: { path } })

/** What danlu.diagnose makes of an object and what is known around it: causes, the worst first. */
export const explainObject = async <Cause>(known: Record<string, KubeObject | readonly KubeObject[]>, signal?: AbortSignal): Promise<readonly Cause[]> =>
  (await requestJson<{ causes: Cause[] }>('/console/explain', { method: 'POST', body: known, signal })).causes

/** The same of several, for lists: the causes of each, in order. */
export const explainEach = async <Cause>(known: Record<string, readonly KubeObject[]>): Promise<readonly (readonly Cause[])[]> =>
  (await requestJson<{ each: Cause[][] }>('/console/explain', { method: 'POST', body: known })).each
