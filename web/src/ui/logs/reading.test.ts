import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LogReader, type LogSource } from './reading'

const server = vi.hoisted(() => ({ answers: [] as string[], asked: 0, running: [] as boolean[] }))

vi.mock('../../kube', async (original) => ({
  ...(await original<typeof import('../../kube')>()),
  openLog: (_namespace: string, _pod: string, { follow }: { follow?: boolean }) => {
    if (!follow) return Promise.reject(new Error('only the whole is read here'))
    return Promise.resolve(new Blob([server.answers[server.asked++] ?? '']).stream())
  },
  getObject: () => {
    const state = server.running.shift() ? { running: {} } : { terminated: { exitCode: 0 } }
    return Promise.resolve({ metadata: { name: 'p', uid: 'u' }, status: { containerStatuses: [{ name: 'c', state }] } })
  },
}))

const read = async (source: Partial<LogSource> = {}): Promise<LogReader> => {
  const reader = new LogReader([{ label: 'p', namespace: 'n', pod: 'p', container: 'c', uid: 'u', ...source }], () => undefined)
  for (let turn = 0; turn < 20; turn++) await vi.advanceTimersByTimeAsync(1_000)
  expect(reader.states).toEqual([{ at: 'ended' }])
  return reader
}
const textOf = ({ lines: [lines] }: LogReader): string[] => Array.from({ length: lines!.count }, (_, index) => lines!.text(index))

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('goes on reading when the stream ends before the container does', async () => {
  Object.assign(server, { answers: ['one\n', 'one\ntwo\nth', 'one\ntwo\nthree'], asked: 0, running: [true, true, false] })
  expect(textOf(await read())).toEqual(['one', 'two', 'three'])
  expect(server.asked).toBe(3)
})

it('ends with the container', async () => {
  Object.assign(server, { answers: ['one\nlast'], asked: 0, running: [false] })
  expect(textOf(await read())).toEqual(['one', 'last'])
  expect(server.asked).toBe(1)
})

it('ends when the pod is another by now', async () => {
  Object.assign(server, { answers: ['one\n'], asked: 0, running: [true] })
  await read({ uid: 'before' })
  expect(server.asked).toBe(1)
})
