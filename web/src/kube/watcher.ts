/** Keeps one list equal to the server's: list, then watch from there, again and again. */
import { reportFound, reportLost } from './connection'
import { openStream } from './channel'
import { errorOfStatus, KubeError, SignedOut } from './errors'
import { requestJson } from './http'
import { applyEvents, EMPTY_LIST, listOf, mergeList, type ObjectList } from './list'
import { withQuery } from './paths'
import type { KubeList, KubeObject, WatchEvent } from './types'

export interface Snapshot {
  readonly list: ObjectList
  /** Nothing has come yet. */
  readonly loading: boolean
  /** More pages of the first list are on their way. */
  readonly partial: boolean
  readonly error: Error | undefined
}

const FIRST_PAGE = 500 // objects: on the screen soon
const PAGE = 2_500 // then few round trips
const FIRST_WAIT_MS = 250
const LONGEST_WAIT_MS = 10_000
const TOO_SHORT_MS = 1_000 // a watch that ends sooner is a failure, or it would be asked for without pause

export class Watcher {
  private current: Snapshot = { list: EMPTY_LIST, loading: true, partial: false, error: undefined }
  private readonly listeners = new Set<() => void>()
  private pending: WatchEvent[] = []
  private flushing: number | undefined
  private stopStream: (() => void) | undefined
  private running = false
  private failures = 0
  private round = 0
  private openedAt = 0
  private timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly path: string,
    private readonly kind: { apiVersion: string; kind: string },
  ) {}

  readonly snapshot = (): Snapshot => this.current

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener)
    return () => this.listeners.delete(listener)
  }

  start(): void {
    if (this.running) return
    this.running = true
    void this.relist()
  }

  stop(): void {
    this.running = false
    this.round++
    clearTimeout(this.timer)
    this.stopStream?.()
    this.stopStream = undefined
    reportFound(this.path)
  }

  /** The refresh button: what is there stays on the screen until the new list has come. */
  refresh(): void {
    this.stopStream?.()
    this.stopStream = undefined
    clearTimeout(this.timer)
    this.failures = 0
    void this.relist()
  }

  private publish(change: Partial<Snapshot>): void {
    this.current = { ...this.current, ...change }
    this.listeners.forEach((listener) => listener())
  }

  private named(object: KubeObject): KubeObject {
    object.apiVersion ??= this.kind.apiVersion
    object.kind ??= this.kind.kind
    return object
  }

  private async relist(): Promise<void> {
    const round = ++this.round
    const old = this.current.list
    const objects: KubeObject[] = []
    let next: string | undefined
    let version = ''
    try {
      do {
        const page: KubeList = await requestJson(withQuery(this.path, { limit: next ? PAGE : FIRST_PAGE, continue: next }))
        if (round !== this.round) return
        for (const item of page.items ?? []) objects.push(this.named(item))
        version = page.metadata.resourceVersion
        next = page.metadata.continue || undefined
        // The first page is shown at once; a refresh is shown as a whole, so that nothing flickers.
        if (next && old.items.size === 0) {
          this.publish({ list: listOf(objects, version), loading: false, partial: true, error: undefined })
        }
      } while (next)
    } catch (error) {
      if (round === this.round) this.failed(error)
      return
    }
    this.pending = []
    this.publish({ list: mergeList(old, listOf(objects, version)), loading: false, partial: false, error: undefined })
    this.failures = 0
    reportFound(this.path)
    this.watch(round)
  }

  private watch(round: number): void {
    const path = withQuery(this.path, {
      watch: true,
      allowWatchBookmarks: true,
      resourceVersion: this.current.list.resourceVersion,
    })
    this.openedAt = Date.now()
    this.stopStream = openStream(path, {
      open: () => {
        if (round === this.round) reportFound(this.path)
      },
      lines: (lines) => {
        if (round === this.round) this.take(lines)
      },
      end: (error) => {
        if (round !== this.round) return
        this.stopStream = undefined
        this.flush()
        if (error) return this.failed(error)
        this.failures = Date.now() - this.openedAt < TOO_SHORT_MS ? this.failures + 1 : 0
        this.again(round)
      },
    })
  }

  private take(lines: readonly string[]): void {
    for (const line of lines) {
      if (!line.trim()) continue
      const event = JSON.parse(line) as WatchEvent
      if (event.type === 'ERROR') {
        this.stopStream?.()
        this.stopStream = undefined
        this.flush()
        this.failed(errorOfStatus(event.object))
        return
      }
      if (event.type !== 'BOOKMARK') this.named(event.object)
      this.pending.push(event)
    }
    this.failures = 0
    reportFound(this.path)
    if (this.pending.length > 0) this.flushing ??= soon(() => this.flush())
  }

  /** Everything that came within one frame is drawn once. */
  private flush(): void {
    this.flushing = undefined
    if (this.pending.length === 0) return
    const events = this.pending
    this.pending = []
    const list = applyEvents(this.current.list, events)
    // Bookmarks move the version on without anybody having to draw.
    if (list.items === this.current.list.items) this.current = { ...this.current, list }
    else this.publish({ list })
  }

  private failed(error: unknown): void {
    const known = error instanceof KubeError
    if (known && error.expired) {
      void this.relist()
      return
    }
    if (error instanceof SignedOut) {
      this.publish({ loading: false, error })
      return
    }
    this.failures++
    if (known && error.code < 500 && error.code !== 429) {
      // Refused: it will be refused again, so it is said, and asked again rarely.
      this.publish({ loading: false, partial: false, error })
      this.timer = setTimeout(() => void this.relist(), 30_000)
      return
    }
    reportLost(this.path)
    if (this.current.loading && this.failures > 1 && error instanceof Error) this.publish({ loading: false, error })
    this.again(this.round)
  }

  private again(round: number): void {
    const wait = this.failures === 0 ? 0 : Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.failures) * (0.7 + 0.6 * Math.random())
    clearTimeout(this.timer)
    this.timer = setTimeout(() => {
      if (round !== this.round) return
      if (this.current.list.resourceVersion && !this.current.partial) this.watch(round)
      else void this.relist()
    }, wait)
  }
}

// A hidden tab draws no frames, but its lists must not pile up.
const soon = (run: () => void): number =>
  typeof requestAnimationFrame === 'function' && !document.hidden ? requestAnimationFrame(run) : (setTimeout(run, 50) as unknown as number)
