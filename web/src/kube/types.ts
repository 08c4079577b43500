/** Kubernetes objects as they are on the wire. Only what every kind has is typed; the rest is read through `field`. */

export interface OwnerReference {
  apiVersion: string
  kind: string
  name: string
  uid: string
  controller?: boolean
}

export interface ObjectMeta {
  name: string
  namespace?: string
  uid?: string
  resourceVersion?: string
  creationTimestamp?: string
  deletionTimestamp?: string
  generation?: number
  labels?: Record<string, string>
  annotations?: Record<string, string>
  ownerReferences?: OwnerReference[]
  finalizers?: string[]
}

export interface KubeObject {
  apiVersion?: string
  kind?: string
  metadata: ObjectMeta
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- kinds are open: a page types what it reads
  [key: string]: any
}

export interface Condition {
  type: string
  status: 'True' | 'False' | 'Unknown'
  reason?: string
  message?: string
  /** what the message says, for programs: codes of danlu.diagnose */
  causes?: { code: string; params?: Record<string, string | number>; lines?: number }[]
  lastTransitionTime?: string
  lastUpdateTime?: string
  lastProbeTime?: string
}

export interface KubeList {
  metadata: { resourceVersion: string; continue?: string; remainingItemCount?: number }
  items: KubeObject[] | null
  kind?: string
  apiVersion?: string
}

export interface StatusCause {
  reason?: string
  message?: string
  field?: string
}

/** The body of every error of the Kubernetes API. */
export interface Status {
  kind: 'Status'
  status?: string
  message?: string
  reason?: string
  code?: number
  details?: { name?: string; kind?: string; group?: string; causes?: StatusCause[]; retryAfterSeconds?: number }
}

export type WatchEvent =
  | { type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; object: KubeObject }
  | { type: 'ERROR'; object: Status }

/** A value deep inside an object, or undefined: `field(pod, 'status.phase')`. A dot in a name is written `\.`. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- see KubeObject
export function field(object: unknown, path: string): any {
  let parts = knownPaths.get(path)
  if (parts === undefined) {
    parts = path.split(/(?<!\\)\./).map((part) => part.replaceAll('\\.', '.'))
    knownPaths.set(path, parts)
  }
  let value: unknown = object
  for (const part of parts) {
    if (value === null || value === undefined) return undefined
    value = (value as Record<string, unknown>)[part]
  }
  return value
}

// Few paths, asked for again and again: a list of 5,000 splits each of them once.
const knownPaths = new Map<string, readonly string[]>()

export const conditionsOf = (object: KubeObject | undefined): Condition[] => field(object, 'status.conditions') ?? []

export const conditionOf = (object: KubeObject | undefined, type: string): Condition | undefined =>
  conditionsOf(object).find((condition) => condition.type === type)

export const isTrue = (object: KubeObject | undefined, type: string): boolean => conditionOf(object, type)?.status === 'True'

/** Identity in lists and as React key; uid when the server gave one, else namespace and name. */
export const keyOf = (object: KubeObject): string =>
  `${object.metadata.namespace ?? ''}/${object.metadata.name}`

export const ownedBy = (object: KubeObject, owner: KubeObject): boolean =>
  (object.metadata.ownerReferences ?? []).some((reference) => reference.uid === owner.metadata.uid)

interface Volume {
  persistentVolumeClaim?: { claimName?: string }
}

/** The claims that a pod's spec names. */
export const claimNames = (spec: unknown): string[] => ((field(spec, 'volumes') ?? []) as Volume[]).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? [])
