/** A command in a container over WebSocket (v5.channel.k8s.io): the first byte of each frame says which stream it is. */
import { webSocketUrl } from './http'
import { KINDS } from './kinds'
import { objectPath, withQuery } from './paths'
import { withProof } from './proof'
import type { Status } from './types'

const STDIN = 0
const STDOUT = 1
const STDERR = 2
const ERROR = 3
const RESIZE = 4
const CLOSE = 255

export interface ExecOptions {
  container?: string | undefined
  command: readonly string[]
  tty?: boolean
  stdin?: boolean
  onOutput: (bytes: Uint8Array, stream: 'stdout' | 'stderr') => void
  onOpen?: () => void
  /** `status` is what the server said of the end; undefined when the connection broke. */
  onEnd: (status: Status | undefined) => void
}

export interface Exec {
  send(text: string | Uint8Array): void
  /** bytes that are not on their way yet: who sends much waits until they are few */
  buffered(): number
  closeInput(): void
  resize(columns: number, rows: number): void
  close(): void
}

export function exec(namespace: string, pod: string, options: ExecOptions): Exec {
  const path = withQuery(objectPath(KINDS.Pod, namespace, pod, 'exec'), {
    container: options.container,
    command: options.command,
    stdin: options.stdin ?? true,
    stdout: true,
    stderr: !options.tty,
    tty: options.tty ?? false,
  })
  const socket = new WebSocket(webSocketUrl(path), withProof('v5.channel.k8s.io', 'v4.channel.k8s.io'))
  socket.binaryType = 'arraybuffer'
  const encoder = new TextEncoder()
  let status: Status | undefined
  socket.onopen = () => options.onOpen?.()
  socket.onmessage = (message: MessageEvent<ArrayBuffer>) => {
    const bytes = new Uint8Array(message.data)
    const body = bytes.subarray(1)
    if (bytes[0] === STDOUT) options.onOutput(body, 'stdout')
    else if (bytes[0] === STDERR) options.onOutput(body, 'stderr')
    else if (bytes[0] === ERROR) status = statusOf(new TextDecoder().decode(body))
  }
  socket.onclose = () => options.onEnd(status)
  const frame = (channel: number, body: Uint8Array): void => {
    if (socket.readyState !== WebSocket.OPEN) return
    const whole = new Uint8Array(body.length + 1)
    whole[0] = channel
    whole.set(body, 1)
    socket.send(whole)
  }
  return {
    send: (text) => frame(STDIN, typeof text === 'string' ? encoder.encode(text) : text),
    buffered: () => socket.bufferedAmount,
    closeInput: () => frame(CLOSE, new Uint8Array([STDIN])),
    resize: (columns, rows) => frame(RESIZE, encoder.encode(JSON.stringify({ Width: columns, Height: rows }))),
    close: () => socket.close(),
  }
}

function statusOf(text: string): Status {
  try {
    return JSON.parse(text) as Status
  } catch {
    return { kind: 'Status', status: 'Failure', message: text }
  }
}

/** Runs a command to its end. */
export function execToEnd(namespace: string, pod: string, container: string | undefined, command: readonly string[]): Promise<{ output: Uint8Array; errors: string; status: Status | undefined }> {
  return new Promise((resolve) => {
    const parts: Uint8Array[] = []
    let errors = ''
    exec(namespace, pod, {
      container,
      command,
      stdin: false,
      onOutput: (bytes, stream) => {
        if (stream === 'stdout') parts.push(bytes.slice())
        else errors += new TextDecoder().decode(bytes)
      },
      onEnd: (status) => {
        const output = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
        let at = 0
        for (const part of parts) {
          output.set(part, at)
          at += part.length
        }
        resolve({ output, errors, status })
      },
    })
  })
}
