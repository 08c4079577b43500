/** What the pages say of a pod. Pure. */
import { field, type KubeObject, type OwnerReference } from '../../kube'
import { containerStatuses } from '../../ui/state'

export const restartsOf = (pod: KubeObject): number => containerStatuses(pod).reduce((sum, status) => sum + (status.restartCount ?? 0), 0)

export function readyOf(pod: KubeObject): string {
  const statuses = (field(pod, 'status.containerStatuses') ?? []) as { ready?: boolean }[]
  const wanted = ((field(pod, 'spec.containers') ?? []) as unknown[]).length
  return `${statuses.filter((status) => status.ready).length}/${wanted}`
}

export const ownerOf = (pod: KubeObject): OwnerReference | undefined =>
  (pod.metadata.ownerReferences ?? []).find((reference) => reference.controller) ?? pod.metadata.ownerReferences?.[0]

export interface Container {
  name: string
  image?: string
  command?: string[]
  args?: string[]
  env?: { name: string; value?: string; valueFrom?: unknown }[]
  ports?: { containerPort: number; name?: string; protocol?: string }[]
  volumeMounts?: { name: string; mountPath: string; readOnly?: boolean }[]
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
  init: boolean
}

export const containersOf = (pod: KubeObject): Container[] => [
  ...((field(pod, 'spec.initContainers') ?? []) as Container[]).map((each) => ({ ...each, init: true })),
  ...((field(pod, 'spec.containers') ?? []) as Container[]).map((each) => ({ ...each, init: false })),
]

export const isRunning = (pod: KubeObject, container: string): boolean => containerStatuses(pod).some((status) => status.name === container && status.state?.running !== undefined)
