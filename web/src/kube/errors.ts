/**
 * Error
 * ├─ KubeError      the API refused: reason, message, causes by field
 * │   └─ SignedOut  401: the sign-in has expired
 * └─ Unreachable    no answer at all
 */
import { withoutTail } from './tail'
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
  constructor(message = 'the server does not answer [DL-UNREACHABLE]') {
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

/** What to show of anything thrown: never a stack, never `[object Object]`, no code for programs. */
export const messageOf = (error: unknown): string => withoutTail(wholeMessageOf(error))

/** The same with its code, by which it can be said in another language. */
export function wholeMessageOf(error: unknown): string {
  if (error instanceof Error) return error.message
  if (typeof error === 'string') return error
  const message = (error as { message?: unknown } | null)?.message
  return typeof message === 'string' ? message : 'unknown error'
}
