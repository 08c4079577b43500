/** Where the cursor stands in a YAML text: the path of keys above it, found by indentation, so it works in half-written text. Pure. */

export interface Place {
  /** keys and list indices down to the line, without the key that is being written */
  path: (string | number)[]
  /** the key of the line, if it has one */
  key: string | undefined
  apiVersion: string | undefined
  kind: string | undefined
}

interface Line {
  indent: number
  dashes: number[]
  key: string | undefined
}

const KEY = /^((?:[\w./-]+)|"[^"]*"|'[^']*')\s*:(?:\s|$)/

function read(text: string): Line | undefined {
  let rest = text
  let indent = 0
  const dashes: number[] = []
  for (;;) {
    const spaces = /^ */.exec(rest)![0].length
    indent += spaces
    rest = rest.slice(spaces)
    if (!/^-(\s|$)/.test(rest)) break
    dashes.push(indent)
    indent += 1
    rest = rest.slice(1)
  }
  if (rest === '' && dashes.length === 0) return undefined
  if (rest.startsWith('#')) return undefined
  return { indent, dashes, key: KEY.exec(rest)?.[1]?.replace(/^["']|["']$/g, '') }
}

/** `lines` of the whole text, `row` counted from 0, `column` the indentation that counts on an empty line. */
export function placeAt(lines: readonly string[], row: number, column: number): Place {
  let first = row
  while (first > 0 && !/^---/.test(lines[first]!)) first--
  let last = row + 1
  while (last < lines.length && !/^---/.test(lines[last]!)) last++
  const own = read(lines[row] ?? '')
  const path: (string | number)[] = []
  // Walk upwards: each line that is indented less is a parent.
  let indent = own ? (own.dashes[0] ?? own.indent) : column
  const dashes = own ? [...own.dashes] : []
  if (own) for (let i = dashes.length - 1; i >= 0; i--) path.unshift(indexAbove(lines, first, row, dashes[i]!))
  for (let i = row - 1; i >= first; i--) {
    const line = read(lines[i]!)
    if (line === undefined) continue
    const inItem = path.length > 0 && typeof path[0] === 'number'
    const begin = line.indent
    const parent = inItem ? begin <= indent : begin < indent
    if (line.key !== undefined && parent && (begin < indent || inItem)) {
      path.unshift(line.key)
      indent = begin
      if (line.dashes.length > 0) {
        for (let d = line.dashes.length - 1; d >= 0; d--) path.unshift(indexAbove(lines, first, i, line.dashes[d]!))
        indent = line.dashes[0]!
      }
    } else if (line.dashes.length > 0 && line.indent <= indent && !inItem && line.indent === indent) {
      // a sibling that opens the list item we are in
      for (let d = line.dashes.length - 1; d >= 0; d--) path.unshift(indexAbove(lines, first, i, line.dashes[d]!))
      indent = line.dashes[0]!
    }
  }
  const top = (key: string): string | undefined => {
    for (let i = first; i < last; i++) {
      const match = new RegExp(`^${key}:\\s*["']?([\\w./-]+)`).exec(lines[i]!)
      if (match) return match[1]
    }
    return undefined
  }
  return { path, key: own?.key, apiVersion: top('apiVersion'), kind: top('kind') }
}

/** How many items of the same list stand above. */
function indexAbove(lines: readonly string[], first: number, row: number, column: number): number {
  let count = 0
  for (let i = row - 1; i >= first; i--) {
    const line = read(lines[i]!)
    if (line === undefined) continue
    if (line.dashes.includes(column)) count++
    else if (line.indent < column || (line.indent === column && line.dashes.length === 0)) break
  }
  return count
}
