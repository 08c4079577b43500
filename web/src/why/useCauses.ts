/** Why an object waits, of all that its page knows: asked of the console's server whenever something of it changes. */
import { useQuery } from '@tanstack/react-query'
import { explainEach, explainObject, field, KINDS, useList, type KubeObject } from '../kube'
import type { Cause } from './table'
import { gathered } from './gathering'
import { carried, storedCauses } from './why'

const version = (objects: readonly KubeObject[]): string => objects.map((each) => `${each.metadata.uid}/${each.metadata.resourceVersion}`).join()

/** What the server does not need to know: the half of an object that says who wrote it. */
const bare = (object: KubeObject): KubeObject => {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & { managedFields?: unknown }
  return { ...object, metadata }
}

export function useCauses(object: KubeObject, pods: readonly KubeObject[] = [], events: readonly KubeObject[] = [], claims: readonly KubeObject[] = []): readonly Cause[] {
  const nodes = useList(KINDS.Node) // whoever may not see them learns no numbers
  const withClaims = object.kind === 'PersistentVolumeClaim' || claims.length > 0
  const classes = useList(KINDS.StorageClass, { enabled: withClaims })
  // What is not known must not look like none.
  const known: { classes?: readonly KubeObject[] } = withClaims && !classes.loading && !classes.error ? { classes: classes.items.map(bare) } : {}
  // Only where something is lacking and its pods are known: what is there already, the quota has allowed.
  const lacks = object.metadata.namespace !== undefined && object.kind !== 'Pod' && (pods.length > 0 || storedCauses(object).length > 0)
  const quotas = useList(KINDS.ResourceQuota, { namespace: object.metadata.namespace, enabled: lacks })
  const told = events.filter((event) => event.type === 'Warning' || event.reason === 'WaitForFirstConsumer')
  const asked = useQuery<readonly Cause[]>({
    queryKey: ['explain', object.metadata.uid, version([object, ...pods]), version(told), version(claims), version(quotas.items), nodes.items.length, known.classes && version(known.classes)],
    retry: false,
    // Until the answer comes, what was true a moment ago: of the same object only.
    placeholderData: (before, query) => (query?.queryKey[1] === object.metadata.uid ? before : undefined),
    queryFn: ({ signal }) => explainObject<Cause>({ object: bare(object), pods: pods.map(bare), events: told.map(bare), claims: claims.map(bare), nodes: nodes.items.map(bare), quotas: quotas.items.map(bare), ...(known.classes ? { classes: known.classes } : {}) }, signal),
  })
  return asked.data ?? storedCauses(object)
}

interface Asked {
  pod: KubeObject
  nodes: readonly KubeObject[]
}

/** The rows of a list ask in one request. */
const askTogether = gathered<Asked, readonly Cause[]>(async (asked) => explainEach<Cause>({ objects: asked.map(({ pod }) => bare(pod)), nodes: asked[0]!.nodes.map(bare) }))

interface Container {
  ready?: boolean
  state?: { running?: object; terminated?: { exitCode: number } }
}

/** Of these there is nothing to say: lists of thousands of pods need not ask. */
export function isWell(pod: KubeObject): boolean {
  if (carried(pod).length > 0) return false
  if (field(pod, 'status.phase') === 'Succeeded') return true
  const containers: readonly Container[] = field(pod, 'status.containerStatuses') ?? []
  return field(pod, 'status.phase') === 'Running' && containers.every((each) => each.state?.running || each.state?.terminated?.exitCode === 0)
}

/** Why a pod of a list does not run; nothing until the answer comes. */
export function usePodCauses(pod: KubeObject | undefined): readonly Cause[] {
  const asks = pod?.kind === 'Pod' && !isWell(pod)
  const nodes = useList(KINDS.Node, { enabled: asks })
  const asked = useQuery<readonly Cause[]>({
    queryKey: ['explain-pod', pod?.metadata.uid, pod?.metadata.resourceVersion, nodes.items.length],
    enabled: asks && !nodes.loading,
    retry: false,
    placeholderData: (before, query) => (query?.queryKey[1] === pod?.metadata.uid ? before : undefined),
    queryFn: () => askTogether({ pod: pod!, nodes: nodes.items }),
  })
  return (asks && asked.data) || []
}
