/** What the cluster says, in the person's language. The table comes when a Chinese page first needs it. */
import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { useLanguage } from '../i18n'
import type { Parameters } from '../i18n/words'
import { sayMessage, sayReason, type Table } from './said'

export interface Said {
  /** as it is where nothing is known */
  reason: (reason: string) => string
  message: (message: string) => string
  /** those of a text: what a cluster said among them */
  parameters: (parameters: Parameters) => Parameters
}

let table: Table | undefined
let coming: Promise<void> | undefined
const listeners = new Set<() => void>()

const load = (): Promise<void> =>
  (coming ??= import('./chinese').then(
    (loaded) => {
      table = loaded
      listeners.forEach((listener) => listener())
    },
    () => {
      coming = undefined // a lost connection; the next page that needs it tries again
    },
  ))

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useSaid(): Said {
  const wanted = useLanguage() === 'zh'
  const loaded = useSyncExternalStore(subscribe, () => table)
  useEffect(() => {
    if (wanted) void load()
  }, [wanted])
  return useMemo(() => {
    const known = wanted ? loaded : undefined
    const message = (text: string): string => (known && sayMessage(text, known)) || text
    return {
      reason: (reason) => (known && sayReason(reason, known)) || reason,
      message,
      parameters: (parameters) => ('message' in parameters ? { ...parameters, message: message(String(parameters.message)) } : parameters),
    }
  }, [wanted, loaded])
}
