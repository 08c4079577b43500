/** A list plus an event is a list: pure. */
import { keyOf, type KubeObject, type WatchEvent } from './types'

export interface ObjectList {
  readonly items: ReadonlyMap<string, KubeObject>
  readonly resourceVersion: string
}

export const EMPTY_LIST: ObjectList = { items: new Map(), resourceVersion: '' }

export const listOf = (objects: Iterable<KubeObject>, resourceVersion: string): ObjectList => ({
  items: new Map([...objects].map((object) => [keyOf(object), object])),
  resourceVersion,
})

export const applyEvent = (list: ObjectList, event: WatchEvent): ObjectList => applyEvents(list, [event])

/** Many events cost one copy of the list. What is unchanged keeps its identity, so React does not draw it again. */
export function applyEvents(list: ObjectList, events: readonly WatchEvent[]): ObjectList {
  let items: Map<string, KubeObject> | undefined
  let { resourceVersion } = list
  for (const event of events) {
    if (event.type === 'ERROR') continue
    resourceVersion = event.object.metadata.resourceVersion ?? resourceVersion
    if (event.type === 'BOOKMARK') continue
    items ??= new Map(list.items)
    const key = keyOf(event.object)
    if (event.type === 'DELETED') {
      // A namesake made since then has another uid and stays.
      if (items.get(key)?.metadata.uid === event.object.metadata.uid) items.delete(key)
    } else {
      items.set(key, event.object)
    }
  }
  if (items === undefined && resourceVersion === list.resourceVersion) return list
  return { items: items ?? list.items, resourceVersion }
}

/** After listing anew: objects that did not change keep their identity. */
export function mergeList(old: ObjectList, fresh: ObjectList): ObjectList {
  const items = new Map<string, KubeObject>()
  for (const [key, object] of fresh.items) {
    const before = old.items.get(key)
    const same = before !== undefined && before.metadata.resourceVersion === object.metadata.resourceVersion
    items.set(key, same ? before : object)
  }
  return { items, resourceVersion: fresh.resourceVersion }
}
