/** What serves a notebook or TensorBoard: a StatefulSet, whose events say why there is no pod. */
import { useMemo } from 'react'
import { KINDS, ownedBy, useList, type KubeObject } from '../kube'
import { useEvents } from './Events'

/** Live events of the object, its pods and the StatefulSet between them. */
export function useServingEvents(object: KubeObject, pods: readonly KubeObject[]): readonly KubeObject[] {
  const { namespace, uid } = object.metadata
  const sets = useList(KINDS.StatefulSet, { namespace })
  // eslint-disable-next-line react-hooks/exhaustive-deps -- of the object only its uid matters
  const own = useMemo(() => sets.items.filter((set) => ownedBy(set, object)), [sets.items, uid])
  return useEvents(namespace, [object, ...pods, ...own]).items
}
