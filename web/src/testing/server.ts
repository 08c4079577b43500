/**
 * The console's server for component tests, at the border of the browser: it stands in for `fetch` and `WebSocket`, so that
 * all of src/kube runs as it does in a browser. It keeps objects, answers lists and writes, tells watches over the shared
 * channel, and can refuse, be silent, or be gone.
 */
import { kindNamed } from '../kube/kinds'
import { collectionPath } from '../kube/paths'
import type { KubeObject, Status } from '../kube/types'
import { FakeSocket } from './socket'

export interface Call {
  method: string
  /** without the query */
  path: string
  query: URLSearchParams
  body: unknown
}

type Answer = (call: Call) => unknown
const ADDRESS = /^(\/k8s\/apis?(?:\/[\w.-]+)?\/v\w+)(?:\/namespaces\/([\w.-]+)(?=\/))?\/(\w+)(?:\/([\w.-]+))?(?:\/(\w+))?$/

/** A refusal of the API: `refusal(403, 'pods is forbidden: …')`. */
export const refusal = (code: number, message: string, more: Partial<Status> = {}): Response =>
  Response.json({ kind: 'Status', status: 'Failure', code, message, ...more }, { status: code })

/** An answer that never comes. */
export const neverAnswers = (): Promise<never> => new Promise(() => undefined)

export const SESSION = { user: { name: 'jane', groups: ['developers'] }, version: '1.2.3', target: 'embedded', signIn: ['token'] }

interface Watch {
  socket: FakeSocket
  id: number
  address: RegExpExecArray
  query: URLSearchParams
}

export class FakeServer {
  /** everything that was asked, in order */
  readonly calls: Call[] = []
  /** terminals: sockets of exec */
  readonly execs: FakeSocket[] = []
  private readonly objects = new Map<string, KubeObject>()
  private readonly rules: { method: string; path: RegExp; answer: Answer }[] = []
  private readonly sockets = new Set<FakeSocket>()
  private watches: Watch[] = []
  private version = 100
  private gone = false

  constructor() {
    this.on('GET', /^\/console\/session$/, () => SESSION)
    this.on('POST', /^\/console\/explain$/, ({ body }) => ({ causes: [], each: ((body as { objects?: unknown[] }).objects ?? []).map(() => []) }))
    this.on('GET', /^\/k8s\/(openapi|apis\/metrics)/, () => refusal(404, 'not served'))
  }

  /** The latest rule that fits answers; without one, the objects do. */
  on(method: string, path: RegExp, answer: Answer): void {
    this.rules.unshift({ method, path, answer })
  }

  /** Lists of a plural are refused, and so are watches. */
  forbid(plural: string): void {
    this.on('GET', new RegExp(`/${plural}$`), () => refusal(403, `${plural} is forbidden: User "jane" cannot list resource "${plural}" in API group "" in the namespace "default"`, { reason: 'Forbidden' }))
  }

  /** Creates or changes; who watches is told. */
  put(...given: KubeObject[]): void {
    for (const object of given) {
      const key = keyOf(object)
      const metadata = { namespace: kindOf(object).namespaced ? 'default' : undefined, uid: `uid-${object.metadata.name}`, creationTimestamp: new Date(Date.now() - 300_000).toISOString(), ...object.metadata, resourceVersion: String(++this.version) }
      const stored = { ...object, metadata } as KubeObject
      const known = this.objects.has(key)
      this.objects.set(key, stored)
      this.tell(known ? 'MODIFIED' : 'ADDED', stored)
    }
  }

  remove(object: KubeObject): void {
    const stored = this.objects.get(keyOf(object))
    if (!stored) throw new Error(`there is no ${keyOf(object)}`)
    this.objects.delete(keyOf(object))
    this.tell('DELETED', stored)
  }

  /** The machine is away: nothing answers, connections break. */
  leave(): void {
    this.gone = true
    ;[...this.sockets].forEach((socket) => socket.drop())
  }

  comeBack(): void {
    this.gone = false
  }

  /** What was written: `written('POST', 'configmaps')`. */
  written(method: string, plural: string): unknown[] {
    return this.calls.filter((call) => call.method === method && new RegExp(`/${plural}(/|$)`).test(call.path)).map((call) => call.body)
  }

  readonly fetch = async (address: string, options: RequestInit = {}): Promise<Response> => {
    if (this.gone) throw new TypeError('fetch failed')
    const url = new URL(address, 'http://console')
    const call = { method: options.method ?? 'GET', path: url.pathname, query: url.searchParams, body: typeof options.body === 'string' ? JSON.parse(options.body) : undefined }
    this.calls.push(call)
    const aborted = new Promise<never>((_, reject) => options.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError'))))
    const answered = await Promise.race([this.answer(call), aborted])
    return answered instanceof Response ? answered : Response.json(answered)
  }

  readonly connect = (address: string): FakeSocket => {
    const { pathname } = new URL(address)
    const socket = new FakeSocket((text) => this.heard(socket, text), () => this.lost(socket))
    if (this.gone) {
      socket.drop()
      return socket
    }
    this.sockets.add(socket)
    if (pathname.endsWith('/exec')) this.execs.push(socket)
    else socket.open()
    return socket
  }

  private async answer(call: Call): Promise<unknown> {
    const rule = this.rules.find((each) => each.method === call.method && each.path.test(call.path))
    if (rule) return await rule.answer(call)
    const address = ADDRESS.exec(call.path)
    if (!address) return refusal(404, `nothing is at ${call.path}`)
    const [, root, namespace, plural, name] = address
    const key = `${root}/${plural}/${namespace ?? ''}/${name ?? ''}`
    if (call.method === 'GET') return name ? (this.objects.get(key) ?? missing(plural!, name)) : this.list(address, call.query)
    if (call.method === 'POST') return this.create(call.body as KubeObject, namespace)
    const stored = this.objects.get(key)
    if (!stored) return missing(plural!, name ?? '')
    if (call.method === 'DELETE') this.remove(stored)
    else this.put(call.method === 'PATCH' ? merged(stored, call.body as object) : (call.body as KubeObject))
    return this.objects.get(key) ?? { kind: 'Status', status: 'Success' }
  }

  private create(object: KubeObject, namespace: string | undefined): unknown {
    const made = { ...object, metadata: { ...(namespace ? { namespace } : {}), ...object.metadata } }
    if (this.objects.has(keyOf(made))) return refusal(409, `${kindOf(object).plural} "${object.metadata.name}" already exists`, { reason: 'AlreadyExists' })
    this.put(made)
    return this.objects.get(keyOf(made))
  }

  private list(address: RegExpExecArray, query: URLSearchParams): unknown {
    return { metadata: { resourceVersion: String(this.version) }, items: [...this.objects.values()].filter((object) => selects(address, query, object)) }
  }

  private tell(type: string, object: KubeObject): void {
    for (const { socket, id, address, query } of this.watches) {
      if (selects(address, query, object)) socket.deliver(`${id}\n${JSON.stringify({ type, object })}\n`)
    }
  }

  private heard(socket: FakeSocket, text: string): void {
    const { open, close, path } = JSON.parse(text) as { open?: number; close?: number; path?: string }
    if (close !== undefined) this.watches = this.watches.filter((each) => each.id !== close)
    if (open === undefined) return
    const url = new URL(path!, 'http://console')
    const address = ADDRESS.exec(url.pathname)
    if (address) this.watches.push({ socket, id: open, address, query: url.searchParams })
  }

  private lost(socket: FakeSocket): void {
    this.sockets.delete(socket)
    this.watches = this.watches.filter((each) => each.socket !== socket)
  }
}

function kindOf(object: KubeObject) {
  const kind = kindNamed(object.kind, object.apiVersion)
  if (!kind) throw new Error(`the console knows no ${object.apiVersion} ${object.kind}`)
  return kind
}

function keyOf(object: KubeObject): string {
  const kind = kindOf(object)
  return `${collectionPath(kind)}/${kind.namespaced ? (object.metadata.namespace ?? 'default') : ''}/${object.metadata.name}`
}

const missing = (plural: string, name: string): Response => refusal(404, `${plural} "${name}" not found`, { reason: 'NotFound' })

function selects([, root, namespace, plural]: RegExpExecArray, query: URLSearchParams, object: KubeObject): boolean {
  const wanted = (selector: string | null): [string, string][] => (selector ? selector.split(',').map((each) => each.split('=') as [string, string]) : [])
  const at = (path: string): unknown => path.split('.').reduce<unknown>((value, step) => (value as Record<string, unknown> | undefined)?.[step], object)
  return (
    collectionPath(kindOf(object)) === `${root}/${plural}` &&
    (!namespace || object.metadata.namespace === namespace) &&
    wanted(query.get('labelSelector')).every(([key, value]) => object.metadata.labels?.[key] === value) &&
    wanted(query.get('fieldSelector')).every(([path, value]) => at(path) === value)
  )
}

/** A merge patch. */
function merged<T extends object>(object: T, patch: object): T {
  const result = { ...object } as Record<string, unknown>
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key]
    else result[key] = typeof value === 'object' && !Array.isArray(value) ? merged((result[key] ?? {}) as object, value as object) : value
  }
  return result as T
}
