/** Completion and hover help from the cluster's OpenAPI. */
import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import type { EditorView, Tooltip } from '@codemirror/view'
import type { Text as DocumentText } from '@codemirror/state'
import { KINDS, schemaOf, type Kind, type Schema } from '../../../kube'
import { placeAt, type Place } from './place'

const linesOf = (document: DocumentText): string[] => document.toString().split('\n')

async function schemaAt(place: Place): Promise<Schema | undefined> {
  if (!place.apiVersion || !place.kind) return undefined
  return (await schemaOf(place.apiVersion, place.kind))?.at(place.path)
}

const typeOf = (schema: Schema | undefined): string => schema?.type ?? ''

export async function completeFromSchema(context: CompletionContext): Promise<CompletionResult | null> {
  const line = context.state.doc.lineAt(context.pos)
  const before = line.text.slice(0, context.pos - line.from)
  const value = /^[\s-]*([\w./-]+):\s*["']?([\w./-]*)$/.exec(before)
  const key = /^([\s-]*)([\w./-]*)$/.exec(before)
  if (value) return completeValue(context, line.number - 1, value[1]!, value[2]!)
  if (!key || (!context.explicit && key[2] === '')) return null
  const place = placeAt(linesOf(context.state.doc), line.number - 1, key[1]!.length)
  const from = context.pos - key[2]!.length
  const schema = await schemaAt(place)
  const properties = schema?.properties
  if (!properties) {
    return place.path.length === 0 ? { from, options: ['apiVersion', 'kind', 'metadata', 'spec'].map((label) => ({ label, apply: `${label}: ` })) } : null
  }
  return {
    from,
    validFor: /^[\w./-]*$/,
    options: Object.entries(properties).map(([label, property]) => {
      const nested = typeOf(property) === 'object' || property.$ref !== undefined || property.allOf !== undefined || property.properties !== undefined
      return {
        label,
        type: 'property',
        detail: typeOf(property) || 'object',
        ...(property.description ? { info: property.description } : {}),
        boost: schema?.required?.includes(label) ? 1 : 0,
        apply: nested || typeOf(property) === 'array' ? `${label}:` : `${label}: `,
      }
    }),
  }
}

async function completeValue(context: CompletionContext, row: number, key: string, typed: string): Promise<CompletionResult | null> {
  const from = context.pos - typed.length
  const place = placeAt(linesOf(context.state.doc), row, 0)
  if (place.path.length === 0 && (key === 'kind' || key === 'apiVersion')) {
    const known = Object.values<Kind>(KINDS).map((each) => (key === 'kind' ? each.kind : each.apiVersion))
    return { from, options: [...new Set(known)].map((label) => ({ label })) }
  }
  const parent = await schemaAt(place)
  const own = parent?.properties?.[key]
  const choices = own?.type === 'boolean' ? ['true', 'false'] : (own?.enum ?? []).map(String)
  return choices.length > 0 ? { from, options: choices.map((label) => ({ label, type: 'enum' })) } : null
}

export async function helpAt(view: EditorView, position: number): Promise<Tooltip | null> {
  const line = view.state.doc.lineAt(position)
  const place = placeAt(linesOf(view.state.doc), line.number - 1, 0)
  if (!place.key || !place.apiVersion || !place.kind) return null
  const schema = (await schemaOf(place.apiVersion, place.kind))?.at([...place.path, place.key])
  if (!schema) return null
  return {
    pos: line.from + line.text.indexOf(place.key),
    above: true,
    create: () => {
      const dom = document.createElement('div')
      dom.style.cssText = 'max-width: 480px; padding: 8px; white-space: pre-wrap; max-height: 240px; overflow: auto'
      const title = document.createElement('strong')
      title.textContent = `${[...place.path, place.key].join('.')} ${typeOf(schema) ? `<${typeOf(schema)}>` : ''}`
      const body = document.createElement('div')
      body.textContent = [schema.description, schema.enum ? `${schema.enum.map(String).join(' | ')}` : ''].filter(Boolean).join('\n')
      dom.append(title, body)
      return { dom }
    },
  }
}
