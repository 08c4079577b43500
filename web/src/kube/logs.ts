/** A container's log, as text chunks or followed live. */
import { KINDS } from './kinds'
import { openStream } from './channel'
import { request } from './http'
import { objectPath, withQuery } from './paths'

export interface LogOptions {
  container?: string | undefined
  follow?: boolean
  previous?: boolean
  timestamps?: boolean
  tailLines?: number
  sinceSeconds?: number
  signal?: AbortSignal
  /** Over the watches' connection: a browser has six others, and a job may have more ranks than that. */
  shared?: boolean
}

export const logPath = (namespace: string, pod: string, options: LogOptions = {}): string =>
  withQuery(objectPath(KINDS.Pod, namespace, pod, 'log'), {
    container: options.container,
    follow: options.follow || undefined,
    previous: options.previous || undefined,
    timestamps: options.timestamps || undefined,
    tailLines: options.tailLines,
    sinceSeconds: options.sinceSeconds,
  })

/** Bytes as they come: the reader decides what a line is. */
export async function openLog(namespace: string, pod: string, options: LogOptions = {}): Promise<ReadableStream<Uint8Array>> {
  if (options.shared) return sharedLog(logPath(namespace, pod, options), options.signal)
  const response = await request(logPath(namespace, pod, options), { accept: '*/*', signal: options.signal })
  return response.body ?? new ReadableStream({ start: (controller) => controller.close() })
}

export async function readLog(namespace: string, pod: string, options: LogOptions = {}): Promise<string> {
  return (await request(logPath(namespace, pod, options), { accept: '*/*', signal: options.signal })).text()
}

function sharedLog(path: string, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let stop: () => void = () => undefined
  return new ReadableStream({
    start: (controller) => {
      stop = openStream(path, {
        open: () => undefined,
        lines: (lines) => controller.enqueue(encoder.encode(`${lines.join('\n')}\n`)),
        end: (error) => (error ? controller.error(error) : controller.close()),
      })
      signal?.addEventListener('abort', () => {
        stop()
        controller.error(signal.reason)
      })
    },
    cancel: () => stop(),
  })
}
