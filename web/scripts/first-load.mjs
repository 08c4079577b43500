// What the browser fetches before the landing page and before the job list stand there, compressed as the server sends it (Brotli): at most 400 kB each.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { brotliCompressSync, gunzipSync } from 'node:zlib'
import { fileURLToPath } from 'node:url'
import { join } from 'node:path'

const LIMIT_KB = 400
const dist = process.argv[2] ?? fileURLToPath(new URL('../dist', import.meta.url))
const assets = join(dist, 'assets')

/** A file's content; scripts/build leaves only the compressed forms of a larger one. */
const read = (path) => (existsSync(path) ? readFileSync(path) : gunzipSync(readFileSync(`${path}.gz`)))

/** A file and everything it imports statically. */
function withImports(name, seen = new Set()) {
  if (seen.has(name)) return seen
  seen.add(name)
  if (!name.endsWith('.js')) return seen
  const text = read(join(assets, name)).toString()
  for (const match of text.matchAll(/(?:import|from)\s*"\.\/([\w.-]+\.js)"/g)) withImports(match[1], seen)
  return seen
}

const html = read(join(dist, 'index.html')).toString()
const entry = [...html.matchAll(/\/assets\/([\w.-]+)/g)].map((match) => match[1])
const first = new Set(entry.flatMap((name) => [...withImports(name)]))
const frame = readdirSync(assets).flatMap((name) => name.match(/^(?:BuildFrame|KindList)-.*\.js(?=$|\.gz$)/) ?? [])
const list = new Set([...first, ...frame.flatMap((name) => [...withImports(name)])])

const kilobytes = (names) => [...names].reduce((sum, name) => sum + brotliCompressSync(read(join(assets, name))).length, 0) / 1000
let failed = false
for (const [what, names] of [['landing page', first], ['job list', list]]) {
  const size = kilobytes(names)
  const over = size > LIMIT_KB
  failed ||= over
  console.log(`${what}: ${size.toFixed(0)} kB compressed in ${names.size} files${over ? `, more than ${LIMIT_KB} kB` : ''}`)
}
process.exit(failed ? 1 : 0)
