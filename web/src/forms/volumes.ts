/** The volumes of a pod's template and where its first container mounts them. Pure. */
import { read, write, type Value } from './value'

export const TYPES = ['persistentVolumeClaim', 'secret', 'configMap', 'emptyDir', 'memory'] as const
export type VolumeType = (typeof TYPES)[number]

/** One row of the form. */
export interface Row {
  type: VolumeType
  /** of the claim, Secret or ConfigMap */
  source: string
  name: string
  mountPath: string
}

type Volume = Record<string, unknown> & { name: string }
type Mount = { name: string; mountPath: string }

const SHARED_MEMORY = '/dev/shm'
const HOME = '/t9k/mnt'

const mountsPath = (path: string): string => path.replace(/volumes$/, 'containers.0.volumeMounts')

const volumesOf = (object: Value, path: string): Volume[] => (read(object, path) ?? []) as Volume[]
const mountsOf = (object: Value, path: string): Mount[] => (read(object, mountsPath(path)) ?? []) as Mount[]

/** undefined: of a type that the form does not know; it is kept as it is. */
export function rowOf(volume: Volume, mounts: readonly Mount[]): Row | undefined {
  const own = { name: volume.name, mountPath: mounts.find((mount) => mount.name === volume.name)?.mountPath ?? '' }
  if ('persistentVolumeClaim' in volume) return { ...own, type: 'persistentVolumeClaim', source: String(read(volume, 'persistentVolumeClaim.claimName') ?? '') }
  if ('secret' in volume) return { ...own, type: 'secret', source: String(read(volume, 'secret.secretName') ?? '') }
  if ('configMap' in volume) return { ...own, type: 'configMap', source: String(read(volume, 'configMap.name') ?? '') }
  if ('emptyDir' in volume) return { ...own, type: read(volume, 'emptyDir.medium') === 'Memory' ? 'memory' : 'emptyDir', source: '' }
  return undefined
}

export const rowsOf = (object: Value, path: string): { name: string; row: Row | undefined }[] =>
  volumesOf(object, path).map((volume) => ({ name: volume.name, row: rowOf(volume, mountsOf(object, path)) }))

/** What else a volume of the same type says (items, readOnly, …) is kept. */
function volumeOf(row: Row, before: Volume | undefined): Volume {
  const kept = before && rowOf(before, [])?.type === row.type ? before : {}
  const { name, source } = row
  switch (row.type) {
    case 'persistentVolumeClaim':
      return { ...kept, name, persistentVolumeClaim: { ...(read(kept, 'persistentVolumeClaim') as object | undefined), claimName: source } }
    case 'secret':
      return { ...kept, name, secret: { ...(read(kept, 'secret') as object | undefined), secretName: source } }
    case 'configMap':
      return { ...kept, name, configMap: { ...(read(kept, 'configMap') as object | undefined), name: source } }
    case 'emptyDir':
      return { ...kept, name, emptyDir: (read(kept, 'emptyDir') as object | undefined) ?? {} }
    case 'memory':
      return { ...kept, name, emptyDir: { ...(read(kept, 'emptyDir') as object | undefined), medium: 'Memory' } }
  }
}

const save = (object: Value, path: string, volumes: Volume[], mounts: Mount[]): Value => write(write(object, path, volumes), mountsPath(path), mounts)

export function addRow(object: Value, path: string): Value {
  const volumes = volumesOf(object, path)
  const name = freeName(volumes)
  return save(object, path, [...volumes, volumeOf({ type: 'persistentVolumeClaim', source: '', name, mountPath: '' }, undefined)], [...mountsOf(object, path), { name, mountPath: volumes.length === 0 ? HOME : '' }])
}

const freeName = (volumes: readonly Volume[]): string => {
  for (let number = volumes.length; ; number++) {
    const name = number === 0 ? 'data' : `data-${number}`
    if (!volumes.some((volume) => volume.name === name)) return name
  }
}

export function removeRow(object: Value, path: string, index: number): Value {
  const volumes = volumesOf(object, path)
  return save(object, path, volumes.filter((_, at) => at !== index), mountsOf(object, path).filter((mount) => mount.name !== volumes[index]!.name))
}

export function changeRow(object: Value, path: string, index: number, change: Partial<Row>): Value {
  const volumes = volumesOf(object, path)
  const mounts = mountsOf(object, path)
  const before = volumes[index]!
  const old = rowOf(before, mounts)!
  const next: Row = { ...old, ...change }
  if (change.type === 'memory' && (!old.mountPath || old.mountPath === HOME)) next.mountPath = SHARED_MEMORY
  const at = mounts.findIndex((mount) => mount.name === before.name)
  const mount = { ...(mounts[at] ?? {}), name: next.name, mountPath: next.mountPath }
  return save(object, path, volumes.map((volume, place) => (place === index ? volumeOf(next, before) : volume)), at < 0 ? [...mounts, mount] : mounts.map((each, place) => (place === at ? mount : each)))
}
