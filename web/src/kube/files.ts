/**
 * Files of a volume, through a pod that mounts it: small Python programs by exec. Nothing listens anywhere, the rights are
 * the person's own right to exec, and no page from a volume is ever shown as a page of the console.
 */
import { KubeError, messageOf } from './errors'
import { exec, execToEnd } from './exec'

export interface Place {
  namespace: string
  pod: string
  container: string
}

export interface Entry {
  name: string
  type: 'file' | 'folder' | 'link' | 'other'
  size: number
  /** seconds since 1970 */
  modified: number
}

const LIST = `
import json, os, sys
def kind(e):
    return "link" if e.is_symlink() else "folder" if e.is_dir() else "file" if e.is_file() else "other"
def entry(e):
    s = e.stat(follow_symlinks=False)
    return {"name": e.name, "type": kind(e), "size": s.st_size, "modified": s.st_mtime}
with os.scandir(sys.argv[1]) as found:
    print(json.dumps([entry(e) for e in found]))
`
const READ = `
import shutil, sys
most = int(sys.argv[2])
with open(sys.argv[1], "rb") as file:
    if most < 0:
        shutil.copyfileobj(file, sys.stdout.buffer, 1 << 20)
    else:
        sys.stdout.buffer.write(file.read(most))
`
const TAR = `
import os, sys, tarfile
folder = sys.argv[1].rstrip("/")
with tarfile.open(fileobj=sys.stdout.buffer, mode="w|") as tar:
    tar.add(folder, arcname=os.path.basename(folder) or "files")
`
// Written beside the file and moved over it at the end: half an upload never replaces a whole file.
const WRITE = `
import os, shutil, sys
path, size = sys.argv[1], int(sys.argv[2])
part = path + ".part"
with open(part, "wb") as file:
    shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
if os.path.getsize(part) != size:
    os.remove(part)
    sys.exit("the connection broke before the whole file had arrived")
os.replace(part, path)
`
const FOLDER = 'import os, sys; os.makedirs(sys.argv[1])'
const MOVE = `
import os, sys
if os.path.lexists(sys.argv[2]):
    sys.exit("there is already something of that name")
os.rename(sys.argv[1], sys.argv[2])
`
const REMOVE = `
import os, shutil, sys
path = sys.argv[1]
shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.remove(path)
`

const python = (program: string, ...words: string[]): string[] => ['python3', '-c', program, ...words]

/** The last line of a traceback is what went wrong. */
const lastLine = (text: string): string => text.trim().split('\n').at(-1) ?? ''

async function run(place: Place, command: string[]): Promise<Uint8Array> {
  const { output, errors, status } = await execToEnd(place.namespace, place.pod, place.container, command)
  if (status?.status === 'Success') return output
  throw new KubeError(500, 'FileError', lastLine(errors) || status?.message || messageOf(new Error('the connection to the pod broke')))
}

export const listFolder = async (place: Place, path: string): Promise<Entry[]> => JSON.parse(new TextDecoder().decode(await run(place, python(LIST, path)))) as Entry[]

/** At most `most` bytes of a file; -1: all of it. */
export const readFile = (place: Place, path: string, most = -1): Promise<Uint8Array> => run(place, python(READ, path, String(most)))

export const readFolder = (place: Place, path: string): Promise<Uint8Array> => run(place, python(TAR, path))

export const makeFolder = (place: Place, path: string): Promise<unknown> => run(place, python(FOLDER, path))

export const moveEntry = (place: Place, from: string, to: string): Promise<unknown> => run(place, python(MOVE, from, to))

export const removeEntry = (place: Place, path: string): Promise<unknown> => run(place, python(REMOVE, path))

const CHUNK = 1 << 16
const IN_FLIGHT = 4 << 20

export function writeFile(place: Place, path: string, file: Blob, onProgress: (sent: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    let errors = ''
    const running = exec(place.namespace, place.pod, {
      container: place.container,
      command: python(WRITE, path, String(file.size)),
      stdin: true,
      onOutput: (bytes, stream) => {
        if (stream === 'stderr') errors += new TextDecoder().decode(bytes)
      },
      onOpen: () => void send().catch(reject),
      onEnd: (status) => (status?.status === 'Success' ? resolve() : reject(new KubeError(500, 'FileError', lastLine(errors) || status?.message || 'the connection to the pod broke'))),
    })
    const send = async (): Promise<void> => {
      for (let at = 0; at < file.size; at += CHUNK) {
        while (running.buffered() > IN_FLIGHT) await new Promise((next) => setTimeout(next, 20))
        running.send(new Uint8Array(await file.slice(at, at + CHUNK).arrayBuffer()))
        onProgress(Math.min(file.size, at + CHUNK))
      }
      running.closeInput()
    }
  })
}
