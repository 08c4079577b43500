/** Everything that an object's page shows, live: the object, its pods, what is told of them, and the project's claims. */
import { useMemo } from 'react'
import { field, KINDS, ownedBy, platformKind, useList, useObject, type KubeObject } from '../kube'
import { useEvents } from '../ui/object/Events'
import type { Description } from './description'
import type { View } from './features'
import { podSelector } from './podSelector'

export function useView(said: Description, namespace: string | undefined, name: string): View {
  const observed = useObject(platformKind(said.kind), namespace, name)
  const { object } = observed
  const named: string | undefined = said.pods?.name && object ? field(object, said.pods.name) || undefined : undefined
  const byName = said.pods?.name !== undefined
  const single = useObject(KINDS.Pod, namespace, named ?? '', { enabled: named !== undefined })
  // Of a kind that names no label, all pods of the project are looked through for their owner.
  const labels = podSelector(said, name)
  const listed = useList(KINDS.Pod, { namespace, ...(labels ? { labels } : {}), enabled: !byName })
  const sets = useList(KINDS.StatefulSet, { namespace, enabled: labels === undefined })
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace })
  const uid = object?.metadata.uid
  // eslint-disable-next-line react-hooks/exhaustive-deps -- of the object only its uid matters
  const between = useMemo(() => (object ? sets.items.filter((set) => ownedBy(set, object)) : []), [sets.items, uid])
  const pods = useMemo<readonly KubeObject[]>(() => {
    if (!object) return []
    if (byName) return named !== undefined && single.object ? [single.object] : []
    return listed.items.filter((pod) => ownedBy(pod, object) || between.some((set) => ownedBy(pod, set)))
    // eslint-disable-next-line react-hooks/exhaustive-deps -- of the object only its uid matters
  }, [uid, byName, named, single.object, listed.items, between])
  // What makes its pods says why there is none.
  const about = useMemo(() => (object ? [object, ...pods, ...between] : []), [uid, pods, between]) // eslint-disable-line react-hooks/exhaustive-deps -- as above
  const { items: events } = useEvents(namespace, about)
  return { observed, pods, events, claims: claims.items }
}
