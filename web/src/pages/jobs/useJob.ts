/** Everything a job's page shows, live: the job, its pods, their services, its TensorBoard, events and claims. */
import { useMemo } from 'react'
import { field, KINDS, ownedBy, useList, useObject, type Kind, type KubeObject, type Observed } from '../../kube'
import { useEvents } from '../../ui/Events'
import { isKubeflow, podSelector, replicasOf, type Replica } from './reading'

const RESTARTS = 'training.danlu.dev/restarts'

export interface JobView {
  observed: Observed
  pods: readonly KubeObject[]
  replicas: readonly Replica[]
  /** how often a replica's pod was made anew, by the replica's name */
  replaced: ReadonlyMap<string, number>
  events: readonly KubeObject[]
  claims: readonly KubeObject[]
}

export function useJob(kind: Kind, namespace: string, name: string): JobView {
  const observed = useObject(kind, namespace, name)
  const labels = podSelector({ kind: kind.kind, name })
  const listed = useList(KINDS.Pod, { namespace, labels })
  const services = useList(KINDS.Service, { namespace, labels })
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace })
  const job = observed.object
  // eslint-disable-next-line react-hooks/exhaustive-deps -- of the job only its uid matters
  const pods = useMemo(() => (job ? listed.items.filter((pod) => ownedBy(pod, job)) : []), [listed.items, job?.metadata.uid])
  const replicas = useMemo(() => (job ? replicasOf(job, pods) : []), [job, pods])
  const replaced = useMemo(
    () => new Map(services.items.map((service) => [service.metadata.name, Number(service.metadata.annotations?.[RESTARTS] ?? 0)])),
    [services.items],
  )
  // eslint-disable-next-line react-hooks/exhaustive-deps -- of the job only its uid matters
  const about = useMemo(() => (job ? [job, ...pods] : []), [job?.metadata.uid, pods])
  const { items: events } = useEvents(namespace, about)
  return { observed, pods, replicas, replaced, events, claims: claims.items }
}

/** The job's TensorBoard; undefined while there is none. */
export function useTensorBoard(job: KubeObject): { wanted: boolean; object: KubeObject | undefined } {
  const name: string = field(job, 'status.tensorboard.dependent.name') ?? field(job, 'status.tensorboard.name') ?? ''
  const { object } = useObject(KINDS.TensorBoard, job.metadata.namespace, name, { enabled: name !== '' })
  // Kubeflow's jobs know of none; one that was made beside the job has its label.
  const beside = useList(KINDS.TensorBoard, { namespace: job.metadata.namespace, labels: podSelector({ kind: job.kind, name: job.metadata.name }), enabled: isKubeflow(job) })
  return { wanted: field(job, 'spec.tensorboardSpec') !== undefined, object: name === '' ? beside.items[0] : object }
}
