/** Which page shows an object. */
import { JOB_KINDS, type KubeObject } from '../kube'

const PAGES: Record<string, string> = {
  Notebook: 'notebooks',
  TensorBoard: 'tensorboards',
  Pod: 'pods',
  PersistentVolumeClaim: 'volumes',
  Secret: 'secrets',
  ConfigMap: 'configmaps',
  Node: 'nodes',
  Queue: 'queues',
}

/** The address of an object's page, or undefined where it has none. `namespace` is the project we are in. */
export function pathOf(object: Pick<KubeObject, 'kind' | 'metadata'>, namespace: string): string | undefined {
  const { kind = '' } = object
  const home = `/build/${object.metadata.namespace ?? namespace}`
  const job = JOB_KINDS.find((each) => each.kind === kind)
  if (job) return `${home}/jobs/${job.plural}/${object.metadata.name}`
  if (kind === 'Namespace') return `/build/${object.metadata.name}/overview`
  if (kind === 'Node' || kind === 'Queue') return `/build/${namespace}/${PAGES[kind]}/${object.metadata.name}`
  return PAGES[kind] ? `${home}/${PAGES[kind]}/${object.metadata.name}` : undefined
}
