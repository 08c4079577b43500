/**
 * Log lines without a JavaScript object for each: bytes stay as they came, with the offset of every line, and only what is
 * on the screen is decoded. A million lines are some megabytes and no garbage. Pure.
 */

const NEWLINE = 10
const CHUNK_LINES = 4096
const decoder = new TextDecoder()

class Growing<A extends Uint32Array | Float64Array> {
  length = 0
  constructor(
    private make: (size: number) => A,
    public data: A = make(1024),
  ) {}

  push(value: number): void {
    if (this.length === this.data.length) {
      const larger = this.make(this.data.length * 2)
      larger.set(this.data as never)
      this.data = larger
    }
    this.data[this.length++] = value
  }

  clear(): void {
    this.length = 0
  }
}

/** The log of one container. With `stamped`, each line begins with the time that the server wrote before it. */
export class SourceLines {
  private readonly chunks: Uint8Array[] = []
  private readonly chunkOf = new Growing((size) => new Uint32Array(size))
  private readonly from = new Growing((size) => new Uint32Array(size))
  private readonly to = new Growing((size) => new Uint32Array(size))
  private readonly stamps = new Growing((size) => new Float64Array(size))
  private rest: Uint8Array = new Uint8Array(0)
  bytes = 0

  constructor(readonly stamped: boolean) {}

  get count(): number {
    return this.chunkOf.length
  }

  append(bytes: Uint8Array): void {
    this.bytes += bytes.length
    let whole = bytes
    if (this.rest.length > 0) {
      whole = new Uint8Array(this.rest.length + bytes.length)
      whole.set(this.rest)
      whole.set(bytes, this.rest.length)
    }
    const chunk = this.chunks.length
    let start = 0
    for (let end = whole.indexOf(NEWLINE); end >= 0; end = whole.indexOf(NEWLINE, start)) {
      this.line(whole, chunk, start, end)
      start = end + 1
    }
    if (start > 0) this.chunks.push(whole)
    this.rest = whole.slice(start)
  }

  /** The log has ended: what has no newline is a line as well. */
  finish(): void {
    if (this.rest.length > 0) this.append(new Uint8Array([NEWLINE]))
  }

  /** Takes back what has no newline yet, and says how many bytes that were: the line will come again, as a whole. */
  takeBack(): number {
    const { length } = this.rest
    this.rest = new Uint8Array(0)
    this.bytes -= length
    return length
  }

  private line(bytes: Uint8Array, chunk: number, start: number, end: number): void {
    let begin = start
    let stamp = 0
    if (this.stamped) {
      const space = bytes.indexOf(32, start)
      if (space > 0 && space <= end && space - start <= 40) {
        stamp = stampOf(bytes, start, space)
        if (stamp > 0) begin = space + 1
      }
      if (stamp === 0 && this.count > 0) stamp = this.stamps.data[this.count - 1]!
    }
    // A carriage return redraws the line (progress bars): what stands last is what a terminal shows.
    const stop = end > begin && bytes[end - 1] === 13 ? end - 1 : end
    this.chunkOf.push(chunk)
    this.from.push(begin)
    this.to.push(stop)
    this.stamps.push(stamp)
  }

  text(index: number): string {
    const chunk = this.chunks[this.chunkOf.data[index]!]
    if (chunk === undefined) return ''
    const text = decoder.decode(chunk.subarray(this.from.data[index], this.to.data[index]))
    const redrawn = text.lastIndexOf('\r')
    return redrawn < 0 ? text : text.slice(redrawn + 1)
  }

  stamp(index: number): number {
    return this.stamps.data[index]!
  }

  /** Lines that contain `wanted` (lower case), decoded a block at a time. */
  *find(wanted: string): Generator<number[]> {
    for (let from = 0; from < this.count; from += CHUNK_LINES) {
      const found: number[] = []
      const end = Math.min(this.count, from + CHUNK_LINES)
      for (let i = from; i < end; i++) if (this.text(i).toLowerCase().includes(wanted)) found.push(i)
      yield found
    }
  }
}

const digits = (bytes: Uint8Array, from: number, count: number): number => {
  let value = 0
  for (let i = from; i < from + count; i++) {
    const digit = bytes[i]! - 48
    if (digit < 0 || digit > 9) return Number.NaN
    value = value * 10 + digit
  }
  return value
}

let lastDay = ''
let lastDayMs = 0

/** 2026-01-02T03:04:05.123456789Z in milliseconds with a fraction; 0 when it is no time. */
export function stampOf(bytes: Uint8Array, from: number, to: number): number {
  if (to - from < 20 || bytes[from + 10] !== 84 /* T */) return 0
  const day = String.fromCharCode(...bytes.subarray(from, from + 10))
  if (day !== lastDay) {
    const parsed = Date.parse(`${day}T00:00:00Z`)
    if (Number.isNaN(parsed)) return 0
    lastDay = day
    lastDayMs = parsed
  }
  const seconds = digits(bytes, from + 11, 2) * 3600 + digits(bytes, from + 14, 2) * 60 + digits(bytes, from + 17, 2)
  let at = from + 19
  let fraction = 0
  if (bytes[at] === 46) {
    let scale = 0.1
    for (at++; at < to && bytes[at]! >= 48 && bytes[at]! <= 57; at++, scale /= 10) fraction += (bytes[at]! - 48) * scale
  }
  let offset = 0
  if (bytes[at] === 43 || bytes[at] === 45) {
    offset = (digits(bytes, at + 1, 2) * 60 + digits(bytes, at + 4, 2)) * (bytes[at] === 43 ? 1 : -1)
  }
  const value = lastDayMs + (seconds + fraction - offset * 60) * 1000
  return Number.isNaN(value) ? 0 : value
}

/** Lines of several sources as one list, by time. `sourceAt[i]` and `lineAt[i]` say which line stands at i. */
export class MergedLines {
  private order = new Growing((size) => new Uint32Array(size))
  private owner = new Growing((size) => new Uint32Array(size))
  private taken: number[] = []
  private last = 0
  private shown: readonly number[] = []

  get count(): number {
    return this.order.length
  }

  source(at: number): number {
    return this.owner.data[at]!
  }

  line(at: number): number {
    return this.order.data[at]!
  }

  /** Takes what has come since; answers false when earlier lines came late and the whole had to be ordered anew. */
  update(sources: readonly SourceLines[], shown: readonly number[]): boolean {
    const same = shown.length === this.shown.length && shown.every((each, index) => each === this.shown[index])
    if (!same) this.reset(shown)
    const single = shown.length === 1
    if (!single && same && shown.some((s) => sources[s]!.count > (this.taken[s] ?? 0) && sources[s]!.stamp(this.taken[s] ?? 0) < this.last)) {
      this.reset(shown)
      this.merge(sources, shown)
      return false
    }
    this.merge(sources, shown)
    return same
  }

  private reset(shown: readonly number[]): void {
    this.order.clear()
    this.owner.clear()
    this.taken = []
    this.last = 0
    this.shown = [...shown]
  }

  private merge(sources: readonly SourceLines[], shown: readonly number[]): void {
    const next = shown.map((s) => this.taken[s] ?? 0)
    for (;;) {
      let best = -1
      let time = Infinity
      for (let i = 0; i < shown.length; i++) {
        const source = sources[shown[i]!]!
        if (next[i]! < source.count && (best < 0 || source.stamp(next[i]!) < time)) {
          best = i
          time = source.stamp(next[i]!)
        }
      }
      if (best < 0) break
      this.owner.push(shown[best]!)
      this.order.push(next[best]!++)
      this.last = time
    }
    shown.forEach((s, i) => (this.taken[s] = next[i]!))
  }
}
