/** What the pages say of a queue. Pure. */
import { bytes, conditionsOf, cores, field, quantity, type KubeObject } from '../../kube'

export const HOME = 't9k-system'

export type QueueState = 'open' | 'closed' | 'unused'

export const queueState = (queue: KubeObject): QueueState => (queue.metadata.namespace !== HOME ? 'unused' : field(queue, 'spec.closed') === true ? 'closed' : 'open')

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

interface Selector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

/** undefined: no selector at all; '': a selector that takes everything. */
export function selectorText(selector: Selector | undefined): string | undefined {
  if (!selector) return undefined
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  const expressions = (selector.matchExpressions ?? []).map((each) => `${each.key} ${each.operator}${each.values?.length ? ` (${each.values.join(', ')})` : ''}`)
  return [...labels, ...expressions].join(', ')
}

/** The newest sentence a pod group says of itself. */
export const saying = (group: KubeObject): string => {
  const [latest] = [...conditionsOf(group)].sort((a, b) => ((a.lastTransitionTime ?? '') < (b.lastTransitionTime ?? '') ? 1 : -1))
  return latest?.message ?? ''
}
