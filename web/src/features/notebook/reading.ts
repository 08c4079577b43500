/** What the pages read from a Notebook, and what they write. Pure. */
import { read, write, type Value } from '../../forms/value'
import { conditionOf, field, type KubeObject } from '../../kube/types'

interface Volume {
  name?: string
  persistentVolumeClaim?: { claimName?: string }
}

interface Mount {
  name?: string
  mountPath?: string
}

const VOLUMES = 'spec.template.spec.volumes'
const MOUNTS = 'spec.template.spec.containers.0.volumeMounts'

/** The form writes volume n and mount n side by side; here both are given the name that ties them together. */
export function withNames(notebook: Value): Value {
  const volumes = (read(notebook, VOLUMES) ?? []) as Volume[]
  const mounts = (read(notebook, MOUNTS) ?? []) as Mount[]
  const nameOf = (index: number): string => (index === 0 ? 'workingdir' : `data-${index}`)
  const named = volumes.map((volume, index) => ({ ...volume, name: volume.name ?? nameOf(index) }))
  const tied = mounts.map((mount, index) => ({ ...mount, name: mount.name ?? named[index]?.name ?? nameOf(index) }))
  return write(write(notebook, VOLUMES, named), MOUNTS, tied)
}

export interface DataVolume {
  claim: string
  mountPath: string
}

/** Claims beside the first one, which is the home folder. */
export function dataVolumes(notebook: Value): DataVolume[] {
  const volumes = ((read(notebook, VOLUMES) ?? []) as Volume[]).slice(1)
  const mounts = ((read(notebook, MOUNTS) ?? []) as Mount[]).slice(1)
  return volumes.map((volume, index) => ({ claim: volume.persistentVolumeClaim?.claimName ?? '', mountPath: mounts[index]?.mountPath ?? '' }))
}

export function withDataVolumes(notebook: Value, data: readonly DataVolume[]): Value {
  const [home = {}] = (read(notebook, VOLUMES) ?? []) as Volume[]
  const [mount = {}] = (read(notebook, MOUNTS) ?? []) as Mount[]
  const volumes = [home, ...data.map((each) => ({ persistentVolumeClaim: { claimName: each.claim } }))]
  return write(write(notebook, VOLUMES, volumes), MOUNTS, [mount, ...data.map((each) => ({ mountPath: each.mountPath }))])
}

export const TYPES: Record<string, string> = { jupyter: 'Jupyter', rstudio: 'RStudio' }

export function useOf(notebook: KubeObject): 'idle' | 'inUse' | 'unknownUse' {
  const idle = conditionOf(notebook, 'Idle')
  return idle?.status === 'True' ? 'idle' : idle?.status === 'False' ? 'inUse' : 'unknownUse'
}

/** How to log in: a forward to the Service, then ssh. Any user name will do. */
export function sshCommands(notebook: KubeObject): string[] {
  const service: string = field(notebook, 'status.ssh.serviceName') ?? ''
  if (!service) return []
  return [`kubectl -n ${notebook.metadata.namespace} port-forward service/${service} 2222:${field(notebook, 'status.ssh.port') ?? 2222}`, `ssh -p 2222 ${notebook.metadata.name}@127.0.0.1`]
}
