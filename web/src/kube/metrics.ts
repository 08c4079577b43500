/** metrics.k8s.io: what pods and nodes use right now. A cluster may not serve it; then `null`. */
import { KubeError } from './errors'
import { requestJson } from './http'
import { collectionPath, selectionPath, type Selection } from './paths'
import { quantity } from './quantity'

const PODS = { apiVersion: 'metrics.k8s.io/v1beta1', plural: 'pods', namespaced: true }
const NODES = { apiVersion: 'metrics.k8s.io/v1beta1', plural: 'nodes', namespaced: false }

export interface Usage {
  /** cores */
  cpu: number
  /** bytes */
  memory: number
}

export interface PodUsage extends Usage {
  name: string
  namespace: string
  timestamp: string
  containers: ({ name: string } & Usage)[]
}

interface Raw {
  metadata: { name: string; namespace?: string }
  timestamp: string
  usage?: { cpu: string; memory: string }
  containers?: { name: string; usage: { cpu: string; memory: string } }[]
}

const usage = (raw: { cpu: string; memory: string } | undefined): Usage => ({ cpu: quantity(raw?.cpu), memory: quantity(raw?.memory) })

async function items(path: string): Promise<Raw[] | null> {
  try {
    return (await requestJson<{ items: Raw[] | null }>(path)).items ?? []
  } catch (error) {
    if (error instanceof KubeError && (error.notFound || error.code === 503)) return null
    throw error
  }
}

export async function podUsage(selection: Selection): Promise<PodUsage[] | null> {
  const raws = await items(selectionPath(PODS, selection))
  if (raws === null) return null
  return raws.map((raw) => {
    const containers = (raw.containers ?? []).map((each) => ({ name: each.name, ...usage(each.usage) }))
    return {
      name: raw.metadata.name,
      namespace: raw.metadata.namespace ?? '',
      timestamp: raw.timestamp,
      containers,
      cpu: containers.reduce((sum, each) => sum + each.cpu, 0),
      memory: containers.reduce((sum, each) => sum + each.memory, 0),
    }
  })
}

export async function nodeUsage(): Promise<Map<string, Usage> | null> {
  const raw = await items(collectionPath(NODES))
  return raw && new Map(raw.map((each) => [each.metadata.name, usage(each.usage)]))
}
