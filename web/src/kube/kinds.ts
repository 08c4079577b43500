/** The kinds the console knows: where they are served, and what people call them. The platform's own say so in their folders. */
import type { Text } from '../i18n/words'
import { DESCRIPTIONS } from '../kinds/description'

export interface Kind {
  readonly kind: string
  readonly apiVersion: string
  readonly plural: string
  readonly namespaced: boolean
  readonly words: Text
}

const kind = (apiVersion: string, name: string, plural: string, zh: string, en: string, namespaced = true): Kind => ({
  kind: name,
  apiVersion,
  plural,
  namespaced,
  words: { zh, en },
})

/** Kubernetes' own. */
export const KINDS = {
  Pod: kind('v1', 'Pod', 'pods', 'Pod', 'Pod'),
  PersistentVolumeClaim: kind('v1', 'PersistentVolumeClaim', 'persistentvolumeclaims', '持久卷', 'PersistentVolumeClaim'),
  PersistentVolume: kind('v1', 'PersistentVolume', 'persistentvolumes', '持久卷 (PV)', 'PersistentVolume', false),
  Secret: kind('v1', 'Secret', 'secrets', 'Secret', 'Secret'),
  ConfigMap: kind('v1', 'ConfigMap', 'configmaps', 'ConfigMap', 'ConfigMap'),
  Service: kind('v1', 'Service', 'services', 'Service', 'Service'),
  Event: kind('v1', 'Event', 'events', '事件', 'Event'),
  ResourceQuota: kind('v1', 'ResourceQuota', 'resourcequotas', '配额', 'ResourceQuota'),
  Namespace: kind('v1', 'Namespace', 'namespaces', '命名空间', 'Namespace', false),
  Node: kind('v1', 'Node', 'nodes', '节点', 'Node', false),
  StorageClass: kind('storage.k8s.io/v1', 'StorageClass', 'storageclasses', '存储类', 'StorageClass', false),
  Job: kind('batch/v1', 'Job', 'jobs', 'Job (batch/v1)', 'Job (batch/v1)'),
  Deployment: kind('apps/v1', 'Deployment', 'deployments', 'Deployment', 'Deployment'),
  StatefulSet: kind('apps/v1', 'StatefulSet', 'statefulsets', 'StatefulSet', 'StatefulSet'),
} as const satisfies Record<string, Kind>

/** The platform's own, by name. */
export const PLATFORM: ReadonlyMap<string, Kind> = new Map(
  DESCRIPTIONS.map((each) => [each.kind, { kind: each.kind, apiVersion: each.apiVersion, plural: each.plural, namespaced: each.namespaced ?? true, words: each.name }]),
)

/** For parts that cannot do without a kind of the platform: the choice of a queue, the list of projects. */
export function platformKind(name: string): Kind {
  const found = PLATFORM.get(name)
  if (!found) throw new Error(`src/danlu/kinds has no ${name}`)
  return found
}

const KNOWN: readonly Kind[] = [...PLATFORM.values(), ...Object.values<Kind>(KINDS)]

export const kindOfPlural = (plural: string | undefined): Kind | undefined => KNOWN.find((known) => known.plural === plural)

export const kindNamed = (name: string | undefined, apiVersion?: string): Kind | undefined =>
  KNOWN.find((known) => known.kind === name && (apiVersion === undefined || known.apiVersion === apiVersion))
