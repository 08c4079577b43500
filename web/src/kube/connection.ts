/** Whether the server answers, for the quiet banner. Watches report here; anybody may listen. */

export type Connection = 'connected' | 'reconnecting'

let failing = new Set<string>()
let since = 0
const listeners = new Set<() => void>()

const changed = (): void => listeners.forEach((listener) => listener())

export function reportLost(who: string): void {
  if (failing.has(who)) return
  if (failing.size === 0) since = Date.now()
  failing = new Set(failing).add(who)
  changed()
}

export function reportFound(who: string): void {
  if (!failing.has(who)) return
  failing = new Set([...failing].filter((each) => each !== who))
  changed()
}

export const connection = (): Connection => (failing.size > 0 ? 'reconnecting' : 'connected')

export const lostSince = (): number => since

export function onConnection(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
