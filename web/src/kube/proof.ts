/**
 * The secret that every request of these pages shows, and without which the sign-in's cookie is worth nothing. Cookies are
 * sent to every port of a host, whoever listens there; what an origin keeps is read by that origin alone. Made anew at each
 * sign-in: what lay in the storage before may be known to whoever had this port before.
 */
const KEPT = 'danlu.proof'
const LEAVING = 'danlu.proof.leaving' // while the person is at the identity provider; of this tab
const PROTOCOL = 'proof.danlu.dev.'

export const PROOF_HEADER = 'X-Danlu-Proof'

export const proof = (): string => localStorage.getItem(KEPT) ?? ''

export const keepProof = (secret: string): void => localStorage.setItem(KEPT, secret)

export const forgetProof = (): void => localStorage.removeItem(KEPT)

/** 32 random bytes as base64url. */
export function newProof(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** A WebSocket has no headers of its own: the secret is one more protocol that it offers. The server chooses another. */
export const withProof = (...protocols: string[]): string[] => [...protocols, PROTOCOL + proof()]

export const leaveWithProof = (secret: string): void => sessionStorage.setItem(LEAVING, secret)

export function returnWithProof(): string {
  const secret = sessionStorage.getItem(LEAVING) ?? ''
  sessionStorage.removeItem(LEAVING)
  return secret
}

/** Somebody signed in or out in another tab. */
export const onProofChanged = (listener: () => void): void =>
  window.addEventListener('storage', (event) => {
    if (event.key === KEPT) listener()
  })
