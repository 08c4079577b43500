/**
 * Where watches travel. A browser opens at most six HTTP/1.1 connections to one server, and an overview watches more kinds
 * than that; so all watches share one WebSocket, /console/watch. Frames of text:
 *   to the server   {"open": ID, "path": "/k8s/…"}  and  {"close": ID}
 *   to the browser  "ID\n" + bytes of the watch's body, "ID!" + Status when it was refused, "ID" alone at its end
 * Where the server has no such channel, each watch is a request of its own.
 */
import { errorOfStatus, SignedOut, Unreachable } from './errors'
import { lineBatches, noticeSignedOut, request, webSocketUrl } from './http'
import { withProof } from './proof'
import type { Status } from './types'

interface Listener {
  /** The server has the request. */
  open: () => void
  lines: (lines: string[]) => void
  end: (error?: Error) => void
}

interface Stream extends Listener {
  path: string
  rest: string
}

const CHANNEL = '/console/watch'
const PROTOCOL = 'watch.danlu.dev'
let available: boolean | undefined // undefined: not tried yet
let socket: WebSocket | undefined
let opening: Promise<boolean> | undefined
let next = 1
let owner = 0 // counts the people to whom the connection has belonged
const streams = new Map<number, Stream>()

function deliver(data: string): void {
  const cut = data.search(/[\n!]/)
  const id = Number(cut < 0 ? data : data.slice(0, cut))
  const stream = streams.get(id)
  if (stream === undefined) return
  if (cut < 0) {
    streams.delete(id)
    stream.end()
  } else if (data[cut] === '!') {
    streams.delete(id)
    const status = JSON.parse(data.slice(cut + 1)) as Status
    stream.end(status.code === 401 ? new SignedOut(status.message) : errorOfStatus(status))
    if (status.code === 401) noticeSignedOut()
  } else {
    const lines = (stream.rest + data.slice(cut + 1)).split('\n')
    stream.rest = lines.pop() ?? ''
    if (lines.length > 0) stream.lines(lines)
  }
}

function lose(): void {
  socket = undefined
  const lost = [...streams.values()]
  streams.clear()
  lost.forEach((stream) => stream.end(new Unreachable()))
}

function connect(): Promise<boolean> {
  if (socket?.readyState === WebSocket.OPEN) return Promise.resolve(true)
  opening ??= new Promise((resolve) => {
    const made = new WebSocket(webSocketUrl(CHANNEL), withProof(PROTOCOL))
    const mine = owner
    made.onopen = () => {
      if (mine !== owner) return made.close()
      socket = made
      available = true
      opening = undefined
      resolve(true)
    }
    made.onmessage = (message: MessageEvent<string>) => deliver(message.data)
    made.onclose = () => {
      if (mine === owner) opening = undefined
      resolve(false)
      if (socket === made) lose()
    }
  })
  return opening
}

/** The connection is a person's: the next one who signs in gets another. */
export function closeChannel(): void {
  owner++
  opening = undefined
  socket?.close()
  lose()
}

/** Starts to watch; the answer ends it. */
export function openStream(path: string, listener: Listener): () => void {
  const aborting = new AbortController()
  const id = next++
  void (async () => {
    const open = available === false ? false : await connect()
    if (aborting.signal.aborted) return
    if (open && socket) {
      streams.set(id, { ...listener, path, rest: '' })
      socket.send(JSON.stringify({ open: id, path }))
      listener.open()
    } else if (available) {
      listener.end(new Unreachable())
    } else {
      await overHttp(path, listener, aborting.signal)
    }
  })()
  return () => {
    aborting.abort()
    if (streams.delete(id) && socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ close: id }))
  }
}

async function overHttp(path: string, listener: Listener, signal: AbortSignal): Promise<void> {
  try {
    const response = await request(path, { signal })
    if (available === undefined) available = false // the server answers, but has no channel
    listener.open()
    if (response.body) for await (const lines of lineBatches(response.body)) listener.lines(lines)
    listener.end()
  } catch (error) {
    if (!signal.aborted) listener.end(error instanceof Error ? error : new Unreachable())
  }
}
