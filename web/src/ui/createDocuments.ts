/** What a YAML text will create, and creating it document by document. */
import { createObject, findKind, messageOf, type Kind, type KubeObject } from '../kube'
import type { Parsed } from './yamlText'

export interface Planned {
  object: KubeObject
  line: number
  kind: Kind | undefined
  namespace: string | undefined
  /** what is missing or unknown; then nothing can be created of it */
  fault?: { key: 'documentNoKind' | 'noSuchKind'; parameters: Record<string, string> }
}

/** Objects without a namespace go to `namespace`, the project we are in. */
export async function plan(parsed: Parsed, namespace: string): Promise<Planned[]> {
  return Promise.all(
    parsed.objects.map(async (object, index): Promise<Planned> => {
      const line = parsed.lines[index] ?? 1
      for (const name of ['apiVersion', 'kind'] as const) {
        if (typeof object[name] !== 'string') return { object, line, kind: undefined, namespace: undefined, fault: { key: 'documentNoKind', parameters: { field: name } } }
      }
      const metadata = object.metadata as Partial<KubeObject['metadata']> | undefined
      if (!metadata || typeof metadata !== 'object' || !(metadata.name || 'generateName' in metadata)) {
        return { object, line, kind: undefined, namespace: undefined, fault: { key: 'documentNoKind', parameters: { field: 'metadata.name' } } }
      }
      const kind = await findKind(object.apiVersion!, object.kind!)
      if (!kind) return { object, line, kind, namespace: undefined, fault: { key: 'noSuchKind', parameters: { kind: object.kind!, apiVersion: object.apiVersion! } } }
      return { object, line, kind, namespace: kind.namespaced ? (object.metadata.namespace ?? namespace) : undefined }
    }),
  )
}

export interface Outcome {
  planned: Planned
  created?: KubeObject
  error?: string
}

/** In order; after an error the rest is still tried, since documents are independent as often as not. */
export async function createAll(planned: readonly Planned[], tell: (outcomes: Outcome[]) => void): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const each of planned) {
    if (!each.kind || each.fault) continue
    try {
      outcomes.push({ planned: each, created: await createObject(each.kind, each.namespace, each.object) })
    } catch (error) {
      outcomes.push({ planned: each, error: messageOf(error) })
    }
    tell([...outcomes])
  }
  return outcomes
}
