import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { LogReader, type LogSource, type SourceState } from './reading'

type Told = { start: number; exitCode?: number; waiting?: string } | 'unscheduled' | 'unreachable' | 'gone'
const server = vi.hoisted(() => ({ answers: [] as string[], asked: 0, told: [] as Told[] }))

vi.mock('../../kube', async (original) => {
  const kube = await original<typeof import('../../kube')>()
  return {
    ...kube,
    openLog: (_namespace: string, _pod: string, { follow }: { follow?: boolean }) => {
      if (!follow) return Promise.reject(new Error('only the whole is read here'))
      return Promise.resolve(new Blob([server.answers[server.asked++] ?? '']).stream())
    },
    getObject: () => {
      const told = server.told.length > 1 ? server.told.shift()! : server.told[0]!
      if (told === 'unreachable') return Promise.reject(new kube.Unreachable())
      if (told === 'gone') return Promise.reject(kube.errorOfStatus({ kind: 'Status', status: 'Failure', code: 404, reason: 'NotFound', message: 'gone' }))
      const spec = { restartPolicy: 'OnFailure', containers: [{ name: 'c' }] }
      const named = { kind: 'Pod', metadata: { name: 'p', uid: 'u' } }
      if (told === 'unscheduled') {
        const conditions = [{ type: 'PodScheduled', status: 'False', message: 'Insufficient cpu' }]
        return Promise.resolve({ ...named, spec, status: { phase: 'Pending', conditions } })
      }
      const { start, exitCode, waiting } = told
      const terminated = exitCode === undefined ? undefined : { exitCode }
      const state = waiting ? { waiting: { message: waiting } } : terminated ? { terminated } : { running: {} }
      return Promise.resolve({ ...named, spec, status: { containerStatuses: [{ name: 'c', state, lastState: waiting ? { terminated: { exitCode: 128 } } : {}, restartCount: start }] } })
    },
  }
})

const done: Told = { start: 0, exitCode: 0 }
const runs = (start = 0): Told => ({ start })
const source: LogSource = { label: 'p', namespace: 'n', pod: 'p', container: 'c', uid: 'u' }

const read = async (changes: Partial<LogSource> = {}): Promise<LogReader> => {
  const reader = new LogReader([{ ...source, ...changes }], () => undefined)
  for (let turn = 0; turn < 30; turn++) await vi.advanceTimersByTimeAsync(1_000)
  expect(reader.states).toEqual([{ at: 'ended' }])
  return reader
}
const textOf = ({ lines: [lines] }: LogReader): string[] => Array.from({ length: lines!.count }, (_, index) => lines!.text(index))
/** Waits in that state some time after the beginning, and reads on later. */
const waitsAndReads = async (after: number, state: SourceState): Promise<string[]> => {
  const reader = new LogReader([source], () => undefined)
  await vi.advanceTimersByTimeAsync(after)
  expect(reader.states).toEqual([state])
  for (let turn = 0; turn < 20; turn++) await vi.advanceTimersByTimeAsync(1_000)
  expect(reader.states).toEqual([{ at: 'ended' }])
  return textOf(reader)
}

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** `told`: how the container stands, asked before and after each stream; the last holds. */
const serve = (answers: string[], told: Told[]): void => void Object.assign(server, { answers, told, asked: 0 })

it('goes on reading when the stream ends before the container does', async () => {
  serve(['one\n', 'one\ntwo\nth', 'one\ntwo\nthree'], [runs(), runs(), runs(), runs(), runs(), done])
  expect(textOf(await read())).toEqual(['one', 'two', 'three'])
  expect(server.asked).toBe(3)
})

it('takes the words of a node that cannot follow for no part of the log', async () => {
  const excuse = 'failed to create fsnotify watcher: too many open files'
  serve([excuse, `one\n${excuse}`, 'one\ntwo\nthree\n'], [runs(), runs(), runs(), runs(), runs(), done])
  expect(textOf(await read())).toEqual(['one', 'two', 'three'])
})

it('reads what a container writes that was started again below the last words of the one before', async () => {
  serve(['one\nlast words', 'one\n'], [runs(), runs(1), runs(1), { start: 1, exitCode: 0 }])
  expect(textOf(await read())).toEqual(['one', 'last words', 'one'])
})

it('waits for the next start of a container that failed, says why, and reads on', async () => {
  const backOff: Told = { start: 0, waiting: 'back-off 10s restarting failed container' }
  serve(['', 'loss 0.5\n'], [{ start: 0, exitCode: 128 }, { start: 0, exitCode: 128 }, backOff, backOff, runs(1), runs(1), { start: 1, exitCode: 0 }])
  expect(await waitsAndReads(4_500, { at: 'between', message: 'back-off 10s restarting failed container' })).toEqual(['loss 0.5'])
})

it('believes no container to have ended that it could not ask about', async () => {
  serve(['one\n', 'one\ntwo\n'], [runs(), 'unreachable', runs(), done])
  expect(textOf(await read())).toEqual(['one', 'two'])
})

it('sees after a lost connection that the container was started again', async () => {
  serve(['one\ntwo\n', 'one\n'], [runs(), 'unreachable', runs(1), { start: 1, exitCode: 0 }])
  expect(textOf(await read())).toEqual(['one', 'two', 'one'])
})

it('waits for a node, whose log is empty until then, and says for what it waits', async () => {
  serve(['', 'one\n'], ['unscheduled', 'unscheduled', runs(), runs(), done])
  expect(await waitsAndReads(2_500, { at: 'waiting', message: 'Insufficient cpu' })).toEqual(['one'])
})

it('ends with the container', async () => {
  serve(['one\nlast'], [runs(), done])
  expect(textOf(await read())).toEqual(['one', 'last'])
  expect(server.asked).toBe(1)
})

it('ends with the pod', async () => {
  serve(['one\nlast'], [runs(), 'gone'])
  expect(textOf(await read())).toEqual(['one', 'last'])
  expect(server.asked).toBe(1)
})

it('ends at once when the container had ended before', async () => {
  serve(['one\n'], [done])
  const reader = new LogReader([source], () => undefined)
  await vi.advanceTimersByTimeAsync(100)
  expect(reader.states).toEqual([{ at: 'ended' }])
})

it('ends when the pod is another by now', async () => {
  serve(['one\n'], [runs()])
  await read({ uid: 'before' })
  expect(server.asked).toBe(1)
})
