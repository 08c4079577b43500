/** One watcher for each list, shared by all that look at it, and kept a while after the last has gone. */
import { closeChannel } from './channel'
import type { Kind } from './kinds'
import { selectionPath, type Selection } from './paths'
import { Watcher } from './watcher'

const KEEP_MS = 20_000

interface Shared {
  watcher: Watcher
  users: number
  ending: ReturnType<typeof setTimeout> | undefined
}

const watchers = new Map<string, Shared>()

const sharedOf = (kind: Kind, selection: Selection): [string, Shared] => {
  const path = selectionPath(kind, selection)
  let shared = watchers.get(path)
  if (shared === undefined) {
    shared = { watcher: new Watcher(path, kind), users: 0, ending: undefined }
    watchers.set(path, shared)
  }
  return [path, shared]
}

export const watcherOf = (kind: Kind, selection: Selection): Watcher => sharedOf(kind, selection)[1].watcher

/** Begins to use a list; the answer ends it. */
export function acquire(kind: Kind, selection: Selection): () => void {
  const [path, shared] = sharedOf(kind, selection)
  shared.users++
  clearTimeout(shared.ending)
  shared.watcher.start()
  return () => {
    shared.users--
    if (shared.users > 0) return
    shared.ending = setTimeout(() => {
      shared.watcher.stop()
      if (watchers.get(path) === shared) watchers.delete(path) // else it was forgotten, and another has its place
    }, KEEP_MS)
  }
}

export const refreshAll = (): void => watchers.forEach((shared) => shared.watcher.refresh())

/** After signing in again, or as somebody else. */
export function forgetAll(): void {
  watchers.forEach((shared) => {
    clearTimeout(shared.ending)
    shared.watcher.stop()
  })
  watchers.clear()
  closeChannel()
}
