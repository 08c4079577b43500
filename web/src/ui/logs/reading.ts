/** Reads the logs of several containers into lines, follows them, and tells at most once a frame that something came. */
import { KubeError, messageOf, openLog } from '../../kube'
import { SourceLines } from './lines'

export interface LogSource {
  /** what people call it: a rank, a replica, a container */
  label: string
  namespace: string
  pod: string
  container?: string | undefined
  previous?: boolean
  /** of the pod: one made anew under the same name writes another log */
  uid?: string | undefined
}

export type SourceState = { at: 'connecting' | 'live' | 'ended' } | { at: 'waiting'; message: string }

const RETRY_MS = 2_000
const MOST_OWN = 2 // connections of our own; the page needs the others

export class LogReader {
  readonly lines: SourceLines[]
  readonly states: SourceState[]
  private readonly ending = new AbortController()
  private scheduled = false

  constructor(
    readonly sources: readonly LogSource[],
    private readonly changed: () => void,
  ) {
    const stamped = sources.length > 1
    this.lines = sources.map(() => new SourceLines(stamped))
    this.states = sources.map(() => ({ at: 'connecting' }))
    sources.forEach((_, index) => void this.read(index))
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
    const { signal } = this.ending
    let received = 0 // bytes; a log only grows, so after a lost connection reading goes on behind them
    while (!signal.aborted) {
      try {
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
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          const fresh = value.subarray(Math.min(skip, value.length))
          skip -= value.length - fresh.length
          if (fresh.length === 0) continue
          received += fresh.length
          this.lines[index]!.append(fresh)
          this.tell()
        }
        this.lines[index]!.finish()
        this.states[index] = { at: 'ended' }
        this.tell()
        return
      } catch (error) {
        if (signal.aborted) return
        this.states[index] = { at: 'waiting', message: messageOf(error) }
        this.tell()
        if (error instanceof KubeError && (error.notFound || error.forbidden)) return
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
      }
    }
  }
}
