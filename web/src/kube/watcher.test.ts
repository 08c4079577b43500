import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { connection } from './connection'
import { KubeError, Unreachable } from './errors'
import type { KubeList, KubeObject } from './types'
import { Watcher } from './watcher'

const { openStream, requestJson } = vi.hoisted(() => ({ openStream: vi.fn(), requestJson: vi.fn() }))
vi.mock('./channel', () => ({ openStream }))
vi.mock('./http', () => ({ requestJson }))

interface Listener {
  open: () => void
  lines: (lines: string[]) => void
  end: (error?: Error) => void
}

const pod = (name: string, resourceVersion: string): KubeObject => ({ metadata: { name, namespace: 'demo', uid: name, resourceVersion } })
const page = (items: KubeObject[], resourceVersion: string, next?: string): KubeList => ({ metadata: { resourceVersion, ...(next ? { continue: next } : {}) }, items })
const line = (type: string, object: unknown): string => JSON.stringify({ type, object })
const names = (watcher: Watcher): string[] => [...watcher.snapshot().list.items.values()].map((object) => object.metadata.name)
const settle = (): Promise<void> => vi.advanceTimersByTimeAsync(60).then(() => undefined)

let watcher: Watcher
let streams: { path: string; listener: Listener }[]

beforeEach(() => {
  vi.useFakeTimers()
  streams = []
  requestJson.mockReset()
  openStream.mockReset().mockImplementation((path: string, listener: Listener) => {
    streams.push({ path, listener })
    listener.open()
    return () => undefined
  })
  watcher = new Watcher('/k8s/api/v1/pods', { apiVersion: 'v1', kind: 'Pod' })
})

afterEach(() => {
  watcher.stop()
  vi.useRealTimers()
})

describe('a watcher', () => {
  it('lists page by page, then watches from there', async () => {
    requestJson.mockResolvedValueOnce(page([pod('a', '1')], '5', 'more')).mockResolvedValueOnce(page([pod('b', '2')], '5'))
    watcher.start()
    await settle()
    expect(names(watcher)).toEqual(['a', 'b'])
    expect(watcher.snapshot()).toMatchObject({ loading: false, partial: false, error: undefined })
    expect(streams[0]?.path).toContain('resourceVersion=5')
    expect(watcher.snapshot().list.items.get('demo/a')?.kind).toBe('Pod')
  })

  it('tells once about many events', async () => {
    requestJson.mockResolvedValueOnce(page([], '5'))
    watcher.start()
    await settle()
    const told = vi.fn()
    watcher.subscribe(told)
    streams[0]!.listener.lines([line('ADDED', pod('a', '6')), line('ADDED', pod('b', '7')), line('MODIFIED', pod('a', '8'))])
    await settle()
    expect(told).toHaveBeenCalledTimes(1)
    expect(names(watcher)).toEqual(['a', 'b'])
  })

  it('continues from the last bookmark when a watch ends', async () => {
    requestJson.mockResolvedValueOnce(page([pod('a', '1')], '5'))
    watcher.start()
    await settle()
    await vi.advanceTimersByTimeAsync(2_000)
    streams[0]!.listener.lines([line('BOOKMARK', { metadata: { resourceVersion: '42' } })])
    streams[0]!.listener.end()
    await settle()
    expect(streams[1]?.path).toContain('resourceVersion=42')
    expect(requestJson).toHaveBeenCalledTimes(1)
  })

  it('lists anew after 410, and what is gone is gone', async () => {
    requestJson.mockResolvedValueOnce(page([pod('a', '1'), pod('b', '2')], '5')).mockResolvedValueOnce(page([pod('b', '2')], '90'))
    watcher.start()
    await settle()
    streams[0]!.listener.lines([line('ERROR', { kind: 'Status', code: 410, reason: 'Expired' })])
    await settle()
    expect(names(watcher)).toEqual(['b'])
    expect(streams[1]?.path).toContain('resourceVersion=90')
  })

  it('keeps what it has while the server is away, says so, and catches up', async () => {
    requestJson.mockResolvedValueOnce(page([pod('a', '1')], '5'))
    watcher.start()
    await settle()
    streams[0]!.listener.end(new Unreachable())
    expect(connection()).toBe('reconnecting')
    expect(names(watcher)).toEqual(['a'])
    await vi.advanceTimersByTimeAsync(2_000)
    expect(streams.length).toBeGreaterThan(1)
    expect(connection()).toBe('connected')
    streams.at(-1)!.listener.lines([line('ADDED', pod('b', '6'))])
    await settle()
    expect(names(watcher)).toEqual(['a', 'b'])
  })

  it('says what was refused', async () => {
    requestJson.mockRejectedValue(new KubeError(403, 'Forbidden', 'no'))
    watcher.start()
    await settle()
    expect(watcher.snapshot()).toMatchObject({ loading: false, error: { message: 'no' } })
    expect(connection()).toBe('connected')
  })

  it('does not ask without pause for a watch that ends at once', async () => {
    requestJson.mockResolvedValueOnce(page([], '5'))
    openStream.mockImplementation((path: string, listener: Listener) => {
      streams.push({ path, listener })
      setTimeout(() => listener.end(), 1)
      return () => undefined
    })
    watcher.start()
    await vi.advanceTimersByTimeAsync(5_000)
    expect(streams.length).toBeLessThan(12)
  })
})
