/** What of a node is given away. Pure. */
import { bytes, cores, field, isDevice, podSum, quantity, type KubeObject, type Sum } from '../../kube'

const ENDED = new Set(['Succeeded', 'Failed'])

export interface Allocation {
  requests: Record<string, number>
  limits: Record<string, number>
  pods: KubeObject[]
}

/** By node name, over all pods that have not ended. */
export function allocations(pods: readonly KubeObject[]): Map<string, Allocation> {
  const found = new Map<string, Allocation>()
  for (const pod of pods) {
    const node: string | undefined = field(pod, 'spec.nodeName')
    if (!node || ENDED.has(field(pod, 'status.phase'))) continue
    let allocation = found.get(node)
    if (!allocation) found.set(node, (allocation = { requests: {}, limits: {}, pods: [] }))
    podSum(pod.spec, 1, allocation as Sum)
    allocation.pods.push(pod)
  }
  return found
}

export const NOTHING: Allocation = { requests: {}, limits: {}, pods: [] }

export interface Line {
  resource: string
  capacity: number
  allocatable: number
  allocated: number
}

export function linesOf(node: KubeObject, allocation: Allocation): Line[] {
  const capacity = (field(node, 'status.capacity') ?? {}) as Record<string, string>
  return Object.keys(capacity)
    .filter((resource) => !resource.startsWith('hugepages-') || quantity(capacity[resource]) > 0)
    .map((resource) => ({
      resource,
      capacity: quantity(capacity[resource]),
      allocatable: quantity(field(node, 'status.allocatable')?.[resource]),
      allocated: resource === 'pods' ? allocation.pods.length : (allocation.requests[resource] ?? 0),
    }))
}

export const gpusOf = (node: KubeObject, allocation: Allocation): Line[] => linesOf(node, allocation).filter((line) => isDevice(line.resource) && line.capacity > 0)

export function amount(resource: string, value: number): string {
  if (resource === 'cpu') return cores(value)
  if (/memory|storage|hugepages/.test(resource)) return bytes(value)
  return String(value)
}

export const rolesOf = (node: KubeObject): string[] =>
  Object.keys(node.metadata.labels ?? {}).flatMap((label) => (label.startsWith('node-role.kubernetes.io/') ? [label.slice('node-role.kubernetes.io/'.length)] : []))
