/** Every job kind in one shape: roles, what they ask for, how they are scheduled, what can be done. Pure. */
import { write } from '../../forms/value'
import { describe, DESCRIPTIONS, type JobSpec } from '../../kinds/description'
import type { KubeObject } from '../../kube'
import { podSum, type Sum } from '../../kube/quantity'
import { claimNames, field, isTrue } from '../../kube/types'

export interface Volume {
  name: string
  persistentVolumeClaim?: { claimName: string }
  [source: string]: unknown
}

interface PodSpec {
  containers?: { name: string; image?: string; resources?: { requests?: Record<string, string>; limits?: Record<string, string> } }[]
  volumes?: Volume[]
  schedulerName?: string
}

export interface Role {
  /** as the kind writes it: worker, Master */
  name: string
  replicas: number
  restartPolicy: string
  spec: PodSpec
}

interface RawRole {
  type?: string
  replicas?: number
  restartPolicy?: string
  template?: { spec?: PodSpec }
}

/** What the job's kind says of itself. Objects of other kinds have no roles. */
const jobSpec = (job: Pick<KubeObject, 'kind'>): JobSpec | undefined => describe(job.kind)?.job

const role = (name: string, raw: RawRole, counted?: number): Role => ({
  name,
  replicas: counted ?? raw.replicas ?? 1,
  restartPolicy: raw.restartPolicy ?? '',
  spec: raw.template?.spec ?? {},
})

/** In the order in which ranks are given. */
export function rolesOf(job: KubeObject): Role[] {
  const { map, order = [], list, elastic } = jobSpec(job)?.roles ?? {}
  if (map) {
    const raw = (field(job, map) ?? {}) as Record<string, RawRole>
    const names = order.map((each) => each.toLowerCase())
    return Object.entries(raw)
      .sort(([a], [b]) => names.indexOf(a.toLowerCase()) - names.indexOf(b.toLowerCase()))
      .map(([name, each]) => role(name, each))
  }
  // An elastic job's own number of replicas is only in its status.
  const counted = elastic !== undefined && isOn(field(job, elastic))
  return ((list ? field(job, list) : undefined) ?? ([] as RawRole[])).map((each: RawRole) => {
    const name = each.type ?? ''
    const told = counted ? tasksOf(job).find((task) => task.type === name)?.replicas?.length : undefined
    return role(name, each, told)
  })
}

/** `enable` is the older spelling. */
export const isOn = (mode: { enabled?: boolean; enable?: boolean } | undefined): boolean => mode?.enabled ?? mode?.enable ?? false

/** A boolean of the spec, also in its older spelling. */
const isSet = (job: KubeObject, path: string | undefined): boolean => path !== undefined && (field(job, path) ?? field(job, path.replace(/\.enabled$/, '.enable'))) === true

export const sumOf = (job: KubeObject): Sum =>
  rolesOf(job).reduce<Sum>((sum, each) => podSum(each.spec, each.replicas, sum), { requests: {}, limits: {} })

const sums = new WeakMap<KubeObject, Sum>()

/** A table asks again and again; an object never changes, it is replaced. */
export function knownSum(job: KubeObject): Sum {
  let sum = sums.get(job)
  if (sum === undefined) {
    sum = sumOf(job)
    sums.set(job, sum)
  }
  return sum
}

export interface Scheduling {
  scheduler: 'default' | 't9k' | string
  queue: string | undefined
  priority: string | undefined
}

export function schedulingOf(job: KubeObject): Scheduling {
  const spec = jobSpec(job)
  if (spec?.t9k) {
    const t9k = field(job, spec.t9k) as { queue?: string; priority?: number } | undefined
    return { scheduler: t9k ? 't9k' : 'default', queue: t9k?.queue, priority: t9k ? String(t9k.priority ?? 0) : undefined }
  }
  const named = rolesOf(job).map((each) => each.spec.schedulerName).find((name) => name && name !== 'default-scheduler')
  const queue: string | undefined = spec?.queue ? field(job, spec.queue) : undefined
  return { scheduler: named ?? (queue ? 't9k' : 'default'), queue, priority: spec?.priority ? field(job, spec.priority) : undefined }
}

export const claimsOf = (job: KubeObject): string[] => [
  ...new Set(rolesOf(job).flatMap((each) => claimNames(each.spec))),
]

/** Volumes that are no claims, by name and kind of source: `dshm (emptyDir)`. */
export const otherVolumesOf = (job: KubeObject): string[] => [
  ...new Set(
    rolesOf(job).flatMap((each) =>
      (each.spec.volumes ?? []).filter((volume) => !volume.persistentVolumeClaim).map((volume) => `${volume.name} (${Object.keys(volume).find((key) => key !== 'name') ?? '?'})`),
    ),
  ),
]

export const isPaused = (job: KubeObject): boolean => isSet(job, jobSpec(job)?.pause)

export const isDebugging = (job: KubeObject): boolean => isSet(job, jobSpec(job)?.debug)

export const canDebug = (job: KubeObject): boolean => jobSpec(job)?.debug !== undefined

/** The TensorBoard is made beside the job, which knows nothing of it. */
export const hasBoardBeside = (job: Pick<KubeObject, 'kind'>): boolean => jobSpec(job)?.tensorboard === 'beside'

export const wantsBoard = (job: KubeObject): boolean => !hasBoardBeside(job) && field(job, jobSpec(job)?.tensorboard ?? '') !== undefined

const ENDS = ['Succeeded', 'Failed']

export const hasEnded = (job: KubeObject): boolean => (describe(job.kind)?.conditions ? ENDS.some((each) => isTrue(job, each)) : ENDS.includes(String(field(job, 'status.phase'))))

export const pausePatch = (job: KubeObject, paused: boolean): object => write({}, jobSpec(job)?.pause ?? '', paused)

export const debugPatch = (job: KubeObject, debugging: boolean): object => write({}, jobSpec(job)?.debug ?? '', debugging)

/** Paused, and in debug mode or not, at once. */
export function bothPatch(job: KubeObject, debugging: boolean): object {
  const { pause = '', debug = '' } = jobSpec(job) ?? {}
  return write(write({}, debug, debugging), pause, true)
}

export interface ReplicaTold {
  name: string
  uid?: string
  phase?: string
  containers?: { name: string; state?: string; exitCode?: number }[]
}

export interface Task {
  type: string
  restartCount?: number
  replicas?: ReplicaTold[]
}

export const tasksOf = (job: KubeObject): Task[] => (field(job, 'status.tasks') ?? []) as Task[]

export interface Replica {
  /** of the pod */
  name: string
  role: string
  index: number
  /** through all roles; what the training calls its rank */
  rank: number
  pod: KubeObject | undefined
  /** what the job's status remembers, when the pod has gone */
  told: ReplicaTold | undefined
}

const label = (pod: KubeObject, name: string): string | undefined =>
  pod.metadata.labels?.[name] ?? pod.metadata.labels?.[`training.kubeflow.org/${name}`]

/** Pods as replicas in the order of ranks; those that are gone but listed in the status stand where they were. */
export function replicasOf(job: KubeObject, pods: readonly KubeObject[]): Replica[] {
  const roles = rolesOf(job)
  const names = roles.map((each) => each.name.toLowerCase())
  const found = new Map<string, Omit<Replica, 'rank'>>()
  for (const task of tasksOf(job)) {
    for (const told of task.replicas ?? []) {
      found.set(told.name, { name: told.name, role: task.type, index: Number(/-(\d+)$/.exec(told.name)?.[1] ?? 0), pod: undefined, told })
    }
  }
  for (const pod of pods) {
    const type = label(pod, 'replica-type') ?? ''
    const name = roles[names.indexOf(type.toLowerCase())]?.name ?? type
    const told = found.get(pod.metadata.name)?.told
    found.set(pod.metadata.name, { name: pod.metadata.name, role: name, index: Number(label(pod, 'replica-index') ?? 0), pod, told })
  }
  const before = (name: string): number => {
    const at = names.indexOf(name.toLowerCase())
    return at < 0 ? names.length : at
  }
  const first = roles.map((_, at) => roles.slice(0, at).reduce((sum, each) => sum + each.replicas, 0))
  return [...found.values()]
    .sort((a, b) => before(a.role) - before(b.role) || a.index - b.index)
    .map((each) => ({ ...each, rank: (first[before(each.role)] ?? 0) + each.index }))
}

/** worker 0, as people say it; the pod's name has digits that nobody reads. */
export const replicaLabel = (replica: Pick<Replica, 'role' | 'index'>): string => `${replica.role}-${replica.index}`

/** The container that trains: by a name that the kinds know, else the first. */
export function trainingContainer(spec: { containers?: { name: string }[] } | undefined): string | undefined {
  const names = (spec?.containers ?? []).map((each) => each.name)
  return names.find((name) => TRAINING.has(name)) ?? names[0]
}

const TRAINING: ReadonlySet<string> = new Set([...DESCRIPTIONS.flatMap((each) => each.job?.container ?? []), 'python'])
