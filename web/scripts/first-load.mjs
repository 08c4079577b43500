// What the browser fetches before the landing page and before the job list stand there, compressed as the server sends it (Brotli): at most 400 kB each.
import { readdirSync, readFileSync } from 'node:fs'
import { brotliCompressSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'

const LIMIT_KB = 400
const dist = process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url))
const assets = join(dist, 'assets')

/** A file and everything it imports statically. */
function withImports(name, seen = new Set()) {
  if (seen.has(name)) return seen
  seen.add(name)
  if (!name.endsWith('.js')) return seen
  const text = readFileSync(join(assets, name), 'utf8')
  for (const match of text.matchAll(/(?:import|from)\s*"\.\/([\w.-]+\.js)"/g)) withImports(match[1], seen)
  return seen
}

const html = readFileSync(join(dist, 'index.html'), 'utf8')
const entry = [...html.matchAll(/\/assets\/([\w.-]+)/g)].map((match) => match[1])
const first = new Set(entry.flatMap((name) => [...withImports(name)]))
const frame = readdirSync(assets).filter((name) => /^(BuildFrame|Jobs)-.*\.js$/.test(name))
const list = new Set([...first, ...frame.flatMap((name) => [...withImports(name)])])

const kilobytes = (names) => [...names].reduce((sum, name) => sum + brotliCompressSync(readFileSync(join(assets, name))).length, 0) / 1000
let failed = false
for (const [what, names] of [['landing page', first], ['job list', list]]) {
  const size = kilobytes(names)
  const over = size > LIMIT_KB
  failed ||= over
  console.log(`${what}: ${size.toFixed(0)} kB compressed in ${names.size} files${over ? `, more than ${LIMIT_KB} kB` : ''}`)
}
process.exit(failed ? 1 : 0)
