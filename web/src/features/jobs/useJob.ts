/** What a job's page shows beyond what every page does: replicas in the order of ranks, and its TensorBoard. */
import { useMemo } from 'react'
import { describe } from '../../kinds/description'
import type { View } from '../../kinds/features'
import { podSelector } from '../../kinds/podSelector'
import { field, KINDS, platformKind, useList, useObject, type KubeObject } from '../../kube'
import { hasBoardBeside, replicasOf, wantsBoard, type Replica } from './reading'

const RESTARTS = 'training.danlu.dev/restarts'
const TENSORBOARD = platformKind('TensorBoard')

const labelsOf = (job: KubeObject): string | undefined => {
  const said = describe(job.kind)
  return said && podSelector(said, job.metadata.name)
}

export interface JobView extends View {
  replicas: readonly Replica[]
  /** how often a replica's pod was made anew, by the replica's name */
  replaced: ReadonlyMap<string, number>
}

export function useJob(job: KubeObject, view: View): JobView {
  const labels = labelsOf(job)
  const services = useList(KINDS.Service, { namespace: job.metadata.namespace, ...(labels ? { labels } : {}) })
  const replicas = useMemo(() => replicasOf(job, view.pods), [job, view.pods])
  const replaced = useMemo(
    () => new Map(services.items.map((service) => [service.metadata.name, Number(service.metadata.annotations?.[RESTARTS] ?? 0)])),
    [services.items],
  )
  return useMemo(() => ({ ...view, replicas, replaced }), [view, replicas, replaced])
}

/** The job's TensorBoard; undefined while there is none. */
export function useTensorBoard(job: KubeObject): { wanted: boolean; object: KubeObject | undefined } {
  const name: string = field(job, 'status.tensorboard.dependent.name') ?? field(job, 'status.tensorboard.name') ?? ''
  const { object } = useObject(TENSORBOARD, job.metadata.namespace, name, { enabled: name !== '' })
  // One that was made beside the job has its label.
  const labels = labelsOf(job)
  const beside = useList(TENSORBOARD, { namespace: job.metadata.namespace, ...(labels ? { labels } : {}), enabled: hasBoardBeside(job) })
  return { wanted: wantsBoard(job), object: name === '' ? beside.items[0] : object }
}
