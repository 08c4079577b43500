import { afterEach, expect, test, vi } from 'vitest'
import { forgetProof, keepProof, newProof, proof, withProof } from './proof'

const kept = new Map<string, string>()
vi.stubGlobal('localStorage', {
  getItem: (key: string) => kept.get(key) ?? null,
  setItem: (key: string, value: string) => void kept.set(key, value),
  removeItem: (key: string) => void kept.delete(key),
})
afterEach(() => kept.clear())

test('a secret is 32 bytes that the server and a WebSocket take, and no two are the same', () => {
  const made = new Set(Array.from({ length: 200 }, newProof))
  expect(made.size).toBe(200)
  made.forEach((secret) => expect(secret).toMatch(/^[A-Za-z0-9_-]{43}$/))
})

test('it is shown until it is forgotten', () => {
  keepProof('abc')
  expect(proof()).toBe('abc')
  expect(withProof('v5.channel.k8s.io')).toEqual(['v5.channel.k8s.io', 'proof.danlu.dev.abc'])
  forgetProof()
  expect(proof()).toBe('')
})
