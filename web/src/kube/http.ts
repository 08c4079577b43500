/** One door to the server: shows the proof, turns refusals into KubeError, tells when the sign-in has expired. */
import { errorOfResponse, SignedOut, Unreachable } from './errors'
import { proof, PROOF_HEADER } from './proof'

let signedOut: () => void = () => undefined

export const onSignedOut = (listener: () => void): void => {
  signedOut = listener
}

/** For what does not come through `request`: the shared watch channel. */
export const noticeSignedOut = (): void => signedOut()

export interface Options {
  method?: string
  body?: unknown
  contentType?: string
  accept?: string
  signal?: AbortSignal | undefined
  raw?: BodyInit
  /** of a sign-in that begins; else the one that is kept */
  proof?: string
}

export async function request(path: string, options: Options = {}): Promise<Response> {
  const method = options.method ?? 'GET'
  const headers: Record<string, string> = { Accept: options.accept ?? 'application/json', [PROOF_HEADER]: options.proof ?? proof() }
  const body = options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body))
  if (body !== undefined) headers['Content-Type'] = options.contentType ?? 'application/json'
  let response: Response
  try {
    response = await fetch(path, {
      method,
      headers,
      credentials: 'same-origin',
      redirect: 'error', // our server sends none; what is shown to it must not be shown elsewhere
      ...(body === undefined ? {} : { body }),
      ...(options.signal ? { signal: options.signal } : {}),
    })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new Unreachable()
  }
  if (response.ok) return response
  const error = await errorOfResponse(response)
  if (error instanceof SignedOut) signedOut()
  throw error
}

export async function requestJson<T>(path: string, options: Options = {}): Promise<T> {
  return (await (await request(path, options)).json()) as T
}

/** The lines of a streamed body, in batches as they arrive. */
export async function* lineBatches(body: ReadableStream<Uint8Array>): AsyncGenerator<string[]> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      if (lines.length > 0) yield lines
    }
    if (rest) yield [rest]
  } finally {
    reader.cancel().catch(() => undefined)
  }
}

export const webSocketUrl = (path: string): string =>
  `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`
