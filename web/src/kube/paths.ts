/** Where objects are on the server: the Kubernetes API stands under /k8s with the identity of who is signed in. */
import type { Kind } from './kinds'

export const API = '/k8s'

export interface Selection {
  namespace?: string | undefined
  labels?: string | undefined
  fields?: string | undefined
}

type Served = Pick<Kind, 'apiVersion' | 'plural' | 'namespaced'>

export function collectionPath(kind: Served, namespace?: string): string {
  const root = kind.apiVersion.includes('/') ? `${API}/apis/${kind.apiVersion}` : `${API}/api/${kind.apiVersion}`
  const scope = kind.namespaced && namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${kind.plural}`
}

export const objectPath = (kind: Served, namespace: string | undefined, name: string, subresource?: string): string =>
  `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}${subresource ? `/${subresource}` : ''}`

type Value = string | number | boolean | undefined

export function withQuery(path: string, query: Record<string, Value | readonly string[]>): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined || value === '') continue
    if (Array.isArray(value)) value.forEach((each: string) => params.append(key, each))
    else params.set(key, String(value as Value))
  }
  const text = params.toString()
  return text ? `${path}${path.includes('?') ? '&' : '?'}${text}` : path
}

export const selectionPath = (kind: Served, selection: Selection): string =>
  withQuery(collectionPath(kind, selection.namespace), {
    labelSelector: selection.labels,
    fieldSelector: selection.fields,
  })
