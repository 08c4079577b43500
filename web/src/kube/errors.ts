/**
 * Error
 * ├─ KubeError      the API refused: reason, message, causes by field
 * │   └─ SignedOut  401: the sign-in has expired
 * └─ Unreachable    no answer at all
 */
import type { Status, StatusCause } from './types'

export class KubeError extends Error {
  constructor(
    readonly code: number,
    readonly reason: string,
    message: string,
    readonly causes: readonly StatusCause[] = [],
    readonly retryAfterSeconds?: number,
  ) {
    super(message)
    this.name = 'KubeError'
  }

  get notFound(): boolean {
    return this.code === 404
  }

  get forbidden(): boolean {
    return this.code === 403
  }

  get conflict(): boolean {
    return this.code === 409
  }

  /** 410: what was asked for is too old to be continued. */
  get expired(): boolean {
    return this.code === 410
  }
}

export class SignedOut extends KubeError {
  constructor(message = 'signed out') {
    super(401, 'Unauthorized', message)
    this.name = 'SignedOut'
  }
}

export class Unreachable extends Error {
  constructor(message = 'the server does not answer') {
    super(message)
    this.name = 'Unreachable'
  }
}

export function errorOfStatus(status: Status, code = status.code ?? 500): KubeError {
  const message = status.message ?? status.reason ?? `HTTP ${code}`
  return new KubeError(code, status.reason ?? '', message, status.details?.causes ?? [], status.details?.retryAfterSeconds)
}

export async function errorOfResponse(response: Response): Promise<KubeError> {
  const text = await response.text().catch(() => '')
  try {
    const body = JSON.parse(text) as Partial<Status> & { message?: string }
    if (response.status === 401) return new SignedOut(body.message)
    return errorOfStatus({ ...body, kind: 'Status' }, response.status)
  } catch {
    if (response.status === 401) return new SignedOut()
    return new KubeError(response.status, response.statusText, text.slice(0, 400) || `HTTP ${response.status}`)
  }
}

/** What to show of anything thrown: never a stack, never `[object Object]`. */
export function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message
  if (typeof error === 'string') return error
  const message = (error as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : 'unknown error'
}

/** Messages by the field they are about; `*.queue` is any field that ends so; what names no field stands under ''. */
export function errorsByField(error: unknown): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  if (!(error instanceof KubeError)) return { '': [messageOf(error)] }
  const put = (field: string, message: string): void => void (found[field] ??= []).push(message.replace(POLICY, ''))
  for (const cause of error.causes) {
    if (!cause.message || UNCHECKED.test(cause.message)) continue
    const named = cause.field && cause.field !== '<nil>'
    const field = named ? fieldPath(cause.field!) : ABOUT_NAME.test(cause.message) ? 'metadata.name' : (fieldsIn(error.reason, cause.message)[0] ?? '')
    put(field, cause.message)
  }
  if (Object.keys(found).length > 0) return found
  for (const field of fieldsIn(error.reason, error.message)) put(field, error.message)
  return Object.keys(found).length > 0 ? found : { '': [error.message] }
}

/** Which policy it was is of no use to people; what it says is. */
const POLICY = /^.*ValidatingAdmissionPolicy '[^']*' with binding '[^']*' denied request: /

/** Said beside what hinders the check, of which it only distracts. */
const UNCHECKED = /some validation rules were not checked/
const ABOUT_NAME = /\bname is (?:part of|too long)/

/** The server names no field for these, but it is plain which they are about. */
function fieldsIn(reason: string, message: string): string[] {
  if (reason === 'AlreadyExists') return ['metadata.name']
  if (/may not use queue/.test(message)) return ['*.t9kScheduler']
  const unknown = [...message.matchAll(/(?:unknown|duplicate) field "([^"]+)"/g)].map((match) => fieldPath(match[1]!))
  if (unknown.length > 0) return unknown
  const asked = /exceeded quota: .*requested: (.*), used: /.exec(message)?.[1]?.split(',') ?? []
  const lacking = /failed quota: [^:]*: must specify (.*)/.exec(message)?.[1]?.split(/;|,/) ?? []
  return [...asked, ...lacking].flatMap((each) => {
    const name = /^(?:requests\.|limits\.)?(cpu|memory|storage)\b/.exec(each.trim())
    return name ? [`*.resources.${each.trim().startsWith('limits') ? 'limits' : 'requests'}.${name[1]}`] : []
  })
}

/** `spec.containers[0].image` → `spec.containers.0.image`, the way forms write paths. */
export const fieldPath = (field: string): string =>
  field
    .replace(/\[([^\]]*)\]/g, (_, inside: string) => `.${inside.replace(/["']/g, '').replaceAll('.', '\\.')}`)
    .replace(/^\./, '')
