/** Live lists and objects for React. */
import { useCallback, useMemo, useRef, useSyncExternalStore } from 'react'
import { connection, onConnection, type Connection } from './connection'
import { KubeError } from './errors'
import type { Kind } from './kinds'
import type { Selection } from './paths'
import { acquire, watcherOf } from './store'
import type { KubeObject } from './types'
import type { Snapshot } from './watcher'

export interface Listed {
  items: readonly KubeObject[]
  loading: boolean
  partial: boolean
  error: Error | undefined
}

const NOTHING: Snapshot = {
  list: { items: new Map(), resourceVersion: '' },
  loading: false,
  partial: false,
  error: undefined,
}

interface Wanted {
  kind: Kind
  selection: Selection
}

/** Several lists as one. The identity of the answer changes only when one of them does. */
function useSnapshots(wanted: readonly Wanted[]): readonly Snapshot[] {
  const key = JSON.stringify(wanted.map(({ kind, selection }) => [kind.apiVersion, kind.plural, selection]))
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the key says all that matters of `wanted`
  const stable = useMemo(() => wanted, [key])
  const last = useRef<readonly Snapshot[]>([])
  const subscribe = useCallback(
    (listener: () => void) => {
      const ends = stable.map(({ kind, selection }) => {
        const release = acquire(kind, selection)
        const unsubscribe = watcherOf(kind, selection).subscribe(listener)
        return () => {
          unsubscribe()
          release()
        }
      })
      return () => ends.forEach((end) => end())
    },
    [stable],
  )
  return useSyncExternalStore(subscribe, () => {
    const now = stable.map(({ kind, selection }) => watcherOf(kind, selection).snapshot())
    const same = now.length === last.current.length && now.every((each, index) => each === last.current[index])
    if (!same) last.current = now
    return last.current
  })
}

export interface ListOptions extends Selection {
  /** false: ask for nothing (for instance while the namespace is not known). */
  enabled?: boolean
}

export function useList(kind: Kind, options: ListOptions = {}): Listed {
  const { enabled = true, ...selection } = options
  const [snapshot = NOTHING] = useSnapshots(enabled ? [{ kind, selection }] : [])
  const items = useMemo(() => [...snapshot.list.items.values()], [snapshot.list.items])
  return { items, loading: snapshot.loading, partial: snapshot.partial, error: snapshot.error }
}

/** Lists of several kinds, one after the other. */
export function useEachList(wanted: readonly { kind: Kind; namespace?: string | undefined }[]): readonly Listed[] {
  const snapshots = useSnapshots(wanted.map(({ kind, namespace }) => ({ kind, selection: { namespace } })))
  return useMemo(() => snapshots.map(({ list, ...rest }) => ({ ...rest, items: [...list.items.values()] })), [snapshots])
}

/** Lists of several kinds as one; a kind the server does not serve is left out. */
export function useLists(kinds: readonly Kind[], options: ListOptions = {}): Listed {
  const { enabled = true, ...selection } = options
  const snapshots = useSnapshots(enabled ? kinds.map((kind) => ({ kind, selection })) : [])
  return useMemo(() => {
    const served = snapshots.filter((each) => !(each.error instanceof KubeError && each.error.notFound))
    return {
      items: served.flatMap((each) => [...each.list.items.values()]),
      loading: served.length > 0 && served.every((each) => each.loading),
      partial: served.some((each) => each.partial || each.loading),
      error: served.find((each) => each.error)?.error,
    }
  }, [snapshots])
}

export interface Observed {
  object: KubeObject | undefined
  loading: boolean
  error: Error | undefined
  /** It was there and has been deleted while we looked. */
  deleted: boolean
}

export function useObject(kind: Kind, namespace: string | undefined, name: string, options: { enabled?: boolean } = {}): Observed {
  const listed = useList(kind, { namespace, fields: `metadata.name=${name}`, enabled: options.enabled ?? true })
  const object = listed.items[0]
  const last = useRef<KubeObject | undefined>(undefined)
  if (object) last.current = object
  else if (last.current && last.current.metadata.name !== name) last.current = undefined
  const deleted = !object && !listed.loading && last.current !== undefined
  return { object: object ?? last.current, loading: listed.loading, error: listed.error, deleted }
}

export const useConnection = (): Connection => useSyncExternalStore(onConnection, connection)
