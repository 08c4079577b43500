/** The cluster's own schemas, for the editor's completion and hover help. Each group's document is fetched once. */
import { requestJson } from './http'
import { API } from './paths'

export interface Schema {
  type?: string
  description?: string
  properties?: Record<string, Schema>
  items?: Schema
  additionalProperties?: Schema | boolean
  allOf?: Schema[]
  required?: string[]
  enum?: unknown[]
  default?: unknown
  $ref?: string
  'x-kubernetes-group-version-kind'?: { group: string; version: string; kind: string }[]
  'x-kubernetes-preserve-unknown-fields'?: boolean
}

interface Document {
  components?: { schemas?: Record<string, Schema> }
}

const documents = new Map<string, Promise<Document>>()

function documentOf(apiVersion: string): Promise<Document> {
  let document = documents.get(apiVersion)
  if (document === undefined) {
    const path = apiVersion.includes('/') ? `apis/${apiVersion}` : `api/${apiVersion}`
    document = requestJson<Document>(`${API}/openapi/v3/${path}`)
    documents.set(apiVersion, document)
    document.catch(() => documents.delete(apiVersion))
  }
  return document
}

export class KindSchema {
  constructor(
    private readonly all: Record<string, Schema>,
    readonly root: Schema,
  ) {}

  resolve(schema: Schema | undefined): Schema | undefined {
    if (schema === undefined) return undefined
    const reference = schema.$ref ?? (schema.allOf?.length === 1 ? schema.allOf[0]?.$ref : undefined)
    if (reference === undefined) return schema
    const target = this.all[reference.slice(reference.lastIndexOf('/') + 1)]
    return target && { ...this.resolve(target), ...(schema.description ? { description: schema.description } : {}) }
  }

  /** The schema at a path such as ['spec', 'containers', 0, 'image']. */
  at(path: readonly (string | number)[]): Schema | undefined {
    let schema = this.resolve(this.root)
    for (const step of path) {
      if (schema === undefined) return undefined
      if (typeof step === 'number') schema = this.resolve(schema.items)
      else {
        const rest = typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined
        schema = this.resolve(schema.properties?.[step] ?? rest)
      }
    }
    return schema
  }
}

/** undefined when the cluster has no schema for it, or serves none. */
export async function schemaOf(apiVersion: string, kind: string): Promise<KindSchema | undefined> {
  try {
    const all = (await documentOf(apiVersion)).components?.schemas ?? {}
    const [group, version] = apiVersion.includes('/') ? apiVersion.split('/') : ['', apiVersion]
    const root = Object.values(all).find((schema) =>
      schema['x-kubernetes-group-version-kind']?.some((each) => each.kind === kind && each.group === group && each.version === version),
    )
    return root && new KindSchema(all, root)
  } catch {
    return undefined
  }
}
