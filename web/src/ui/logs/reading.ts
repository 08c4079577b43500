/** Reads the logs of several containers into lines, follows them, and tells at most once a frame that something came. */
import { getObject, KINDS, KubeError, messageOf, openLog } from '../../kube'
import { SourceLines } from './lines'
import { containerPhase, type ContainerPhase } from './containerPhase'

export interface LogSource {
  /** what people call it: a rank, a replica, a container */
  label: string
  namespace: string
  pod: string
  container?: string | undefined
  previous?: boolean
  /** of the pod: one made anew under the same name writes another log */
  uid: string | undefined
}

/** waiting: for the first start; between: it has ended and will be started again; unread: the log cannot be had */
export type SourceState = { at: 'connecting' | 'live' | 'ended' } | { at: 'waiting' | 'between' | 'unread'; message: string; exitCode?: number | undefined }

const RETRY_MS = 2_000
const NOT_STARTED = 400 // a node's answer while the container waits
const MOST_OWN = 2 // connections of our own; the page needs the others

const TAIL = 2_000 // lines that are shown at once, while the whole log is on its way
const MOST_TAILS = 16 // sources that get so much care
const QUIET_MS = 200 // nothing came for so long: what there was has come
const SMALL = 4_096 // bytes; what was there comes in larger pieces than what is written now

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, RETRY_MS))

export class LogReader {
  /** what is to be shown: the end of a log at first, then the whole */
  readonly lines: SourceLines[]
  /** grows when lines are replaced by others */
  round = 0
  private readonly whole: SourceLines[]
  readonly states: SourceState[]
  private readonly ending = new AbortController()
  private scheduled = false

  constructor(
    readonly sources: readonly LogSource[],
    private readonly changed: () => void,
  ) {
    const stamped = sources.length > 1
    this.whole = sources.map(() => new SourceLines(stamped))
    this.lines = [...this.whole]
    this.states = sources.map(() => ({ at: 'connecting' }))
    sources.forEach((_, index) => void this.begin(index))
  }

  /** Lines that have come, of all sources. */
  get received(): number {
    return this.whole.reduce((sum, lines) => sum + lines.count, 0)
  }

  /** Only the end of some log is shown yet. */
  get partial(): boolean {
    return this.lines.some((lines, index) => lines !== this.whole[index])
  }

  private async begin(index: number): Promise<void> {
    if (this.sources.length <= MOST_TAILS) await this.readTail(index).catch(() => undefined) // said when the whole is read
    await this.read(index)
  }

  private async readTail(index: number): Promise<void> {
    const { namespace, pod, container, previous = false } = this.sources[index]!
    const stamped = this.sources.length > 1
    const body = await openLog(namespace, pod, { container, previous, timestamps: stamped, tailLines: TAIL, signal: this.ending.signal })
    const tail = new SourceLines(stamped)
    const reader = body.getReader()
    for (let part = await reader.read(); !part.done; part = await reader.read()) tail.append(part.value)
    tail.finish()
    if (tail.count < TAIL) return // short: the whole is here as soon
    this.lines[index] = tail
    this.round++
    this.tell()
  }

  private showWhole(index: number): void {
    if (this.lines[index] === this.whole[index]) return
    this.lines[index] = this.whole[index]!
    this.round++
    this.tell()
  }

  close(): void {
    this.ending.abort()
  }

  private tell(): void {
    if (this.scheduled) return
    this.scheduled = true
    setTimeout(() => {
      this.scheduled = false
      if (!this.ending.signal.aborted) this.changed()
    }, 32)
  }

  private async read(index: number): Promise<void> {
    const source = this.sources[index]!
    const lines = this.whole[index]!
    const { signal } = this.ending
    let start: string | undefined // which start of the container the lines are of
    let received = 0 // bytes of it; a log only grows, so after a lost connection reading goes on behind them
    while (!signal.aborted) {
      try {
        const before = await this.phaseOf(source)
        if (start !== undefined && before !== undefined && before.start !== start) {
          lines.finish() // started again: what the new one writes stands below the last words of the one before
          received = 0
        }
        start = before?.start ?? start
        const body = await openLog(source.namespace, source.pod, {
          container: source.container,
          follow: !source.previous,
          previous: source.previous ?? false,
          timestamps: this.sources.length > 1,
          signal,
          shared: this.sources.length > MOST_OWN,
        })
        this.states[index] = { at: 'live' }
        const reader = body.getReader()
        let skip = received
        let quiet: ReturnType<typeof setTimeout> | undefined
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          const fresh = value.subarray(Math.min(skip, value.length))
          skip -= value.length - fresh.length
          if (fresh.length === 0) continue
          received += fresh.length
          lines.append(fresh)
          clearTimeout(quiet)
          if (value.length < SMALL) this.showWhole(index)
          else quiet = setTimeout(() => this.showWhole(index), QUIET_MS)
          this.tell()
        }
        clearTimeout(quiet)
        this.showWhole(index)
        const now = before?.over === false ? await this.settled(index, before.start) : undefined
        // A node, or whoever stands between, may end the stream of a container that runs on; some write why, as a line without end.
        if (now?.start === start && now?.running) received -= lines.takeBack()
        else lines.finish()
        if (now === undefined || (now.over && now.start === start)) {
          this.states[index] = { at: 'ended' }
          this.tell()
          return
        }
      } catch (error) {
        if (signal.aborted) return
        this.states[index] = { at: error instanceof KubeError && error.code === NOT_STARTED ? 'waiting' : 'unread', message: messageOf(error) }
        this.tell()
        if (error instanceof KubeError && (error.notFound || error.forbidden)) return
        await pause()
      }
    }
  }

  /** The phase of the container once it runs on, was started again or is over. A pod without a node has an empty log, too. */
  private async settled(index: number, start: string): Promise<ContainerPhase | undefined> {
    for (;;) {
      await pause() // that a container has ended is told a little later than its log ends
      const now = await this.phaseOf(this.sources[index]!)
      if (!now || now.over || now.running || now.start !== start) return now
      this.states[index] = { at: now.begun ? 'between' : 'waiting', message: now.message, ...(now.exitCode === undefined ? {} : { exitCode: now.exitCode }) }
      this.tell()
    }
  }

  /** Undefined when there is nothing to know: the pod is gone or another by now, or not for these eyes. */
  private async phaseOf({ namespace, pod, uid, container, previous }: LogSource): Promise<ContainerPhase | undefined> {
    if (previous) return undefined
    try {
      const found = await getObject(KINDS.Pod, namespace, pod, this.ending.signal)
      return uid === undefined || found.metadata.uid === uid ? containerPhase(found, container) : undefined
    } catch (error) {
      if (error instanceof KubeError && (error.notFound || error.forbidden)) return undefined
      throw error
    }
  }
}
