/** What a YAML text will create, and creating it document by document. */
import { createObject, findKind, isQuantity, type Kind, type KubeObject } from '../../kube'
import { escapeStep } from '../../forms/value'
import { errorsByField } from '../../why/fields'
import { recognise } from '../../why/table'
import type { Parsed, YamlFault } from './yamlText'

export interface Planned {
  object: KubeObject
  line: number
  place: Parsed['places'][number]
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
      const place = parsed.places[index]!
      for (const name of ['apiVersion', 'kind'] as const) {
        if (typeof object[name] !== 'string') return { object, line, place, kind: undefined, namespace: undefined, fault: { key: 'documentNoKind', parameters: { field: name } } }
      }
      const metadata = object.metadata as Partial<KubeObject['metadata']> | undefined
      if (!metadata || typeof metadata !== 'object' || !(metadata.name || 'generateName' in metadata)) {
        return { object, line, place, kind: undefined, namespace: undefined, fault: { key: 'documentNoKind', parameters: { field: 'metadata.name' } } }
      }
      const kind = await findKind(object.apiVersion!, object.kind!)
      if (!kind) return { object, line, place, kind, namespace: undefined, fault: { key: 'noSuchKind', parameters: { kind: object.kind!, apiVersion: object.apiVersion! } } }
      return { object, line, place, kind, namespace: kind.namespaced ? (object.metadata.namespace ?? namespace) : undefined }
    }),
  )
}

export interface Outcome {
  planned: Planned
  created?: KubeObject
  /** why not, each at its line */
  faults?: YamlFault[]
}

/** The same object, though its text was changed meanwhile. */
export const isSame = (one: Planned, other: Planned): boolean =>
  one.kind === other.kind && one.namespace === other.namespace && one.object.metadata?.name !== undefined && one.object.metadata.name === other.object.metadata?.name

/** What the server said, at the lines that it is about. */
export function faultsOf(error: unknown, { object, place }: Pick<Planned, 'object' | 'place'>): YamlFault[] {
  return Object.entries(errorsByField(error)).flatMap(([field, messages]) =>
    messages.map((message) => {
      const code = recognise(message)?.code
      const path = field.startsWith('*.') ? find(object, (each) => each.endsWith(field.slice(1))) : field || (code === 'DL-QUANTITY' ? find(object, isBadQuantity) : '')
      // A field that is missing has no line of its own: it is named.
      return { ...place(path ?? ''), message: field && code === 'DL-VALUE-REQUIRED' ? `${field}: ${message}` : message }
    }),
  )
}

const isBadQuantity = (path: string, value: unknown): boolean =>
  /(?:resources\.(?:limits|requests)|capacity|hard)\.[^.]+$|sizeLimit$/.test(path) && typeof value === 'string' && !isQuantity(value)

/** The path of the first field that is meant. */
function find(value: unknown, isMeant: (path: string, value: unknown) => boolean, path = ''): string | undefined {
  if (path && isMeant(path, value)) return path
  if (typeof value !== 'object' || value === null) return undefined
  for (const [key, inner] of Object.entries(value)) {
    const found = find(inner, isMeant, path ? `${path}.${escapeStep(key)}` : escapeStep(key))
    if (found) return found
  }
  return undefined
}

/** In order; after an error the rest is still tried, since documents are independent as often as not. */
export async function createAll(planned: readonly Planned[], tell: (outcomes: Outcome[]) => void): Promise<Outcome[]> {
  const outcomes: Outcome[] = []
  for (const each of planned) {
    if (!each.kind || each.fault) continue
    try {
      outcomes.push({ planned: each, created: await createObject(each.kind, each.namespace, each.object) })
    } catch (error) {
      outcomes.push({ planned: each, faults: faultsOf(error, each) })
    }
    tell([...outcomes])
  }
  return outcomes
}
