import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LogReader, type LogSource } from './reading'

const server = vi.hoisted(() => ({ answers: [] as string[], asked: 0, restarts: [] as (number | undefined)[] }))

vi.mock('../../kube', async (original) => ({
  ...(await original<typeof import('../../kube')>()),
  openLog: (_namespace: string, _pod: string, { follow }: { follow?: boolean }) => {
    if (!follow) return Promise.reject(new Error('only the whole is read here'))
    return Promise.resolve(new Blob([server.answers[server.asked++] ?? '']).stream())
  },
  getObject: () => {
    const restartCount = server.restarts.shift()
    const state = restartCount === undefined ? { terminated: { exitCode: 0 } } : { running: {} }
    return Promise.resolve({ metadata: { name: 'p', uid: 'u' }, status: { containerStatuses: [{ name: 'c', state, restartCount }] } })
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

/** `restarts`: of the running container, asked at the beginning and at the end of each stream; none: it does not run. */
const serve = (answers: string[], restarts: number[]): void => void Object.assign(server, { answers, restarts, asked: 0 })

it('goes on reading when the stream ends before the container does', async () => {
  serve(['one\n', 'one\ntwo\nth', 'one\ntwo\nthree'], [0, 0, 0, 0, 0])
  expect(textOf(await read())).toEqual(['one', 'two', 'three'])
  expect(server.asked).toBe(3)
})

it('takes the words of a node that cannot follow for no part of the log', async () => {
  const excuse = 'failed to create fsnotify watcher: too many open files'
  serve([excuse, `one\n${excuse}`, 'one\ntwo\nthree\n'], [0, 0, 0, 0, 0])
  expect(textOf(await read())).toEqual(['one', 'two', 'three'])
})

it('reads what a container writes that was started again below the last words of the one before', async () => {
  serve(['one\nlast words', 'one\n'], [0, 1, 1])
  expect(textOf(await read())).toEqual(['one', 'last words', 'one'])
})

it('ends with the container', async () => {
  serve(['one\nlast'], [0])
  expect(textOf(await read())).toEqual(['one', 'last'])
  expect(server.asked).toBe(1)
})

it('ends at once when the container had ended before', async () => {
  serve(['one\n'], [])
  const reader = new LogReader([{ label: 'p', namespace: 'n', pod: 'p' }], () => undefined)
  await vi.advanceTimersByTimeAsync(100)
  expect(reader.states).toEqual([{ at: 'ended' }])
})

it('ends when the pod is another by now', async () => {
  serve(['one\n'], [0, 0])
  await read({ uid: 'before' })
  expect(server.asked).toBe(1)
})
