/** The scalars in a TensorBoard log: records with a length and checksums around them, each a protobuf message Event. Pure. */

export interface Scalars {
  tag: string
  /** seconds since 1970 */
  times: number[]
  steps: number[]
  values: number[]
}

const HEAD = 12 // length (8 bytes) and its checksum (4)
const TAIL = 4

type Visit = (field: number, wire: number, at: number, length: number) => void

/** Calls `visit` for each field of the message between `from` and `to`; ends quietly where the bytes end. */
function fields(bytes: Uint8Array, from: number, to: number, visit: Visit): void {
  let at = from
  const varint = (): number => {
    let value = 0
    for (let shift = 1; at < to; shift *= 128) {
      const byte = bytes[at++]!
      value += (byte & 127) * shift
      if (byte < 128) break
    }
    return value
  }
  while (at < to) {
    const key = varint()
    const wire = key & 7
    let length = wire === 1 ? 8 : wire === 5 ? 4 : 0
    if (wire === 0) {
      const start = at
      varint()
      visit(key >>> 3, wire, start, at - start)
      continue
    }
    if (wire === 2) length = varint()
    else if (length === 0) return
    if (at + length > to) return
    visit(key >>> 3, wire, at, length)
    at += length
  }
}

const number = (bytes: Uint8Array, at: number): number => {
  let value = 0
  for (let shift = 1; ; shift *= 128) {
    const byte = bytes[at++]!
    value += (byte & 127) * shift
    if (byte < 128) return value
  }
}

/** Event { wall_time = 1, step = 2, summary = 5 { value = 1 { tag = 1, simple_value = 2, tensor = 8 } } } */
export function scalarsIn(file: Uint8Array): Scalars[] {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength)
  const found = new Map<string, Scalars>()
  for (let at = 0; at + HEAD <= file.length; ) {
    const length = Number(view.getBigUint64(at, true))
    const start = at + HEAD
    if (start + length + TAIL > file.length) break // still being written
    readEvent(file, view, start, start + length, found)
    at = start + length + TAIL
  }
  return [...found.values()].sort((a, b) => a.tag.localeCompare(b.tag))
}

function readEvent(file: Uint8Array, view: DataView, from: number, to: number, found: Map<string, Scalars>): void {
  let time = 0
  let step = 0
  const values: [string, number][] = []
  fields(file, from, to, (field, wire, at, length) => {
    if (field === 1 && wire === 1) time = view.getFloat64(at, true)
    else if (field === 2 && wire === 0) step = number(file, at)
    else if (field === 5 && wire === 2) {
      fields(file, at, at + length, (inner, innerWire, start, size) => {
        if (inner !== 1 || innerWire !== 2) return
        const value = readValue(file, view, start, start + size)
        if (value) values.push(value)
      })
    }
  })
  for (const [tag, value] of values) {
    let series = found.get(tag)
    if (!series) found.set(tag, (series = { tag, times: [], steps: [], values: [] }))
    series.times.push(time)
    series.steps.push(step)
    series.values.push(value)
  }
}

function readValue(file: Uint8Array, view: DataView, from: number, to: number): [string, number] | undefined {
  let tag = ''
  let value: number | undefined
  fields(file, from, to, (field, wire, at, length) => {
    if (field === 1 && wire === 2) tag = new TextDecoder().decode(file.subarray(at, at + length))
    else if (field === 2 && wire === 5) value = view.getFloat32(at, true)
    else if (field === 8 && wire === 2) value ??= tensorScalar(file, view, at, at + length)
  })
  return value === undefined ? undefined : [tag, value]
}

/** TensorProto { dtype = 1 (1: float), tensor_content = 4, float_val = 5 }: Keras writes scalars so. */
function tensorScalar(file: Uint8Array, view: DataView, from: number, to: number): number | undefined {
  let float = false
  let value: number | undefined
  fields(file, from, to, (field, wire, at, length) => {
    if (field === 1 && wire === 0) float = number(file, at) === 1
    else if ((field === 4 || field === 5) && ((wire === 2 && length === 4) || wire === 5)) value = view.getFloat32(at, true)
  })
  return float ? value : undefined
}
