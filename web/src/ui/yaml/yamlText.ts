/** Objects as YAML and back. Pure. */
import { isCollection, isMap, isScalar, parseAllDocuments, stringify, type Document } from 'yaml'
import { steps } from '../../forms/value'
import type { KubeObject } from '../../kube'

/** As people want to read it: managedFields are noise. */
export function toYaml(object: unknown, options: { managedFields?: boolean } = {}): string {
  let shown = object
  const metadata = (object as KubeObject | undefined)?.metadata as Record<string, unknown> | undefined
  if (metadata && 'managedFields' in metadata && !options.managedFields) {
    const { managedFields: _, ...rest } = metadata
    shown = { ...(object as object), metadata: rest }
  }
  return stringify(shown, { lineWidth: 0, aliasDuplicateObjects: false })
}

/** What a copy of an object is made of: nothing that the server wrote. */
export function asNew(object: KubeObject): KubeObject {
  const { status: _, ...rest } = structuredClone(object)
  const { name, namespace, labels, annotations } = rest.metadata
  const kept = Object.entries(annotations ?? {}).filter(([key]) => key !== 'kubectl.kubernetes.io/last-applied-configuration')
  return {
    ...rest,
    metadata: {
      name,
      ...(namespace ? { namespace } : {}),
      ...(labels && Object.keys(labels).length > 0 ? { labels } : {}),
      ...(kept.length > 0 ? { annotations: Object.fromEntries(kept) } : {}),
    },
  }
}

export interface YamlFault {
  /** counted from 1 */
  line: number
  column: number
  message: string
}

export interface Parsed {
  objects: KubeObject[]
  /** the line at which each object begins, from 1 */
  lines: number[]
  /** for each object: the place of a field, or of what is nearest above it */
  places: ((path: string) => { line: number; column: number })[]
  faults: YamlFault[]
}


export function parseYaml(text: string): Parsed {
  const parsed: Parsed = { objects: [], lines: [], places: [], faults: [] }
  const documents = parseAllDocuments(text, { prettyErrors: true, uniqueKeys: true, version: '1.1', merge: true }) as Document.Parsed[]
  if (!Array.isArray(documents)) return parsed
  for (const document of documents) {
    for (const error of document.errors) {
      const at = error.linePos?.[0]
      parsed.faults.push({ line: at?.line ?? 1, column: at?.col ?? 1, message: error.message.split(/ at line |\n/)[0] ?? error.message })
    }
    if (document.errors.length > 0) continue
    const line = lineAt(text, document.contents?.range?.[0] ?? document.range[0])
    const value = document.toJS() as unknown
    if (value === null || value === undefined) continue
    const inList = itemsOf(value)[0] !== value
    itemsOf(value).forEach((object, index) => {
      if (typeof object !== 'object' || Array.isArray(object)) {
        parsed.faults.push({ line, column: 1, message: 'a document must be an object with apiVersion, kind and metadata [DL-NO-DOCUMENT]' })
        return
      }
      parsed.objects.push(object as KubeObject)
      parsed.lines.push(line)
      parsed.places.push((path) => placeOf(text, document, [...(inList ? ['items', String(index)] : []), ...steps(path)]))
    })
  }
  return parsed
}

/** Down the path as far as the text has it; a key stands where its name is written. */
function placeOf(text: string, document: Document.Parsed, path: readonly string[]): { line: number; column: number } {
  let node: unknown = document.contents
  let offset = document.contents?.range?.[0] ?? document.range[0]
  for (const step of path) {
    if (!isCollection(node)) break
    const pair = isMap(node) ? node.items.find((each) => isScalar(each.key) && (each.key.source ?? String(each.key.value)) === step) : undefined
    const next = isMap(node) ? pair?.value : node.items[Number(step)]
    const at = ((pair?.key ?? next) as { range?: [number, number, number] } | undefined)?.range?.[0]
    if (at === undefined) break
    offset = at
    node = next
  }
  const line = lineAt(text, offset)
  return { line, column: offset - text.lastIndexOf('\n', offset - 1) }
}

/** kind: List holds objects of its own. */
const itemsOf = (value: unknown): unknown[] => {
  const { kind, items } = value as { kind?: string; items?: unknown }
  return kind === 'List' && Array.isArray(items) ? items : [value]
}

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length
