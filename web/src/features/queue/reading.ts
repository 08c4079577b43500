/** What the pages say of a queue. Pure. */
import { bytes, conditionsOf, cores, field, quantity, type KubeObject } from '../../kube'

export interface Part {
  resource: string
  used: number
  whole: number
}

export function quotaParts(queue: KubeObject): Part[] {
  const quota = (field(queue, 'spec.quota.requests') ?? field(queue, 'spec.requests') ?? {}) as Record<string, string>
  const used = (field(queue, 'status.allocated') ?? {}) as Record<string, string>
  return Object.entries(quota).map(([resource, whole]) => ({ resource, used: quantity(used[resource]), whole: quantity(whole) }))
}

export const formatPart = (resource: string) => (value: number): string => (resource === 'cpu' ? cores(value) : resource === 'memory' ? bytes(value) : String(value))

/** The newest sentence a pod group says of itself. */
export const saying = (group: KubeObject): string => {
  const [latest] = [...conditionsOf(group)].sort((a, b) => ((a.lastTransitionTime ?? '') < (b.lastTransitionTime ?? '') ? 1 : -1))
  return latest?.message ?? ''
}
