/** What the cluster says, in the person's language. The table comes when a Chinese page first needs it. */
import { useEffect, useMemo, useSyncExternalStore } from 'react'
import { useLanguage } from '../i18n'
import type { Parameters } from '../i18n/words'
import { wholeMessageOf } from '../kube/errors'
import { tailOf, withoutTail } from '../kube/tail'
import { sayMessage, sayReason, tableOf, type Table } from './said'
import { isKnown, sentence, stored, type Cause } from './table'

export interface Said {
  /** as it is where nothing is known */
  reason: (reason: string) => string
  message: (message: string) => string
  /** what was thrown, whoever refused or did not answer */
  error: (error: unknown) => string
  /** of a condition or an event that carries its causes */
  stored: (message: string, causes: readonly Cause[]) => string
  /** those of a text: what a cluster said among them */
  parameters: (parameters: Parameters) => Parameters
}

let table: Table | undefined
let coming: Promise<void> | undefined
const listeners = new Set<() => void>()

const load = (): Promise<void> =>
  (coming ??= import('../../../src/danlu/diagnose/tables/chinese.json').then(
    (loaded) => {
      table = tableOf(loaded.default)
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
    const message = (text: string): string => {
      const tail = tailOf(text)
      if (tail && isKnown(tail)) return wanted ? sentence(tail, 'zh') : withoutTail(text)
      return (known && sayMessage(text, known)) || text
    }
    return {
      reason: (reason) => (known && sayReason(reason, known)) || reason,
      message,
      error: (error) => message(wholeMessageOf(error)),
      // In English the message itself is right: it was written from the same table.
      stored: (text, causes) => (wanted && stored(text, causes, 'zh', message)) || message(text),
      parameters: (parameters) => ('message' in parameters ? { ...parameters, message: message(String(parameters.message)) } : parameters),
    }
  }, [wanted, loaded])
}
