/** The kinds the console knows: where they are served, and what people call them. */
import type { Text } from '../i18n/words'

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

const BATCH = 'batch.tensorstack.dev/v1beta1'
const TENSORSTACK = 'tensorstack.dev/v1beta1'
const SCHEDULER = 'scheduler.tensorstack.dev/v1beta1'

export const KINDS = {
  PyTorchTrainingJob: kind(BATCH, 'PyTorchTrainingJob', 'pytorchtrainingjobs', 'PyTorchTrainingJob', 'PyTorchTrainingJob'),
  TensorFlowTrainingJob: kind(BATCH, 'TensorFlowTrainingJob', 'tensorflowtrainingjobs', 'TensorFlowTrainingJob', 'TensorFlowTrainingJob'),
  TensorFlowJob: kind(BATCH, 'TensorFlowJob', 'tensorflowjobs', 'TensorFlowJob', 'TensorFlowJob'),
  PyTorchJob: kind('kubeflow.org/v1', 'PyTorchJob', 'pytorchjobs', 'PyTorchJob', 'PyTorchJob'),
  TFJob: kind('kubeflow.org/v1', 'TFJob', 'tfjobs', 'TFJob', 'TFJob'),
  Notebook: kind(TENSORSTACK, 'Notebook', 'notebooks', 'Notebook', 'Notebook'),
  TensorBoard: kind(TENSORSTACK, 'TensorBoard', 'tensorboards', 'TensorBoard', 'TensorBoard'),
  Project: kind(TENSORSTACK, 'Project', 'projects', '项目', 'Project'),
  Queue: kind(SCHEDULER, 'Queue', 'queues', '队列', 'Queue'),
  PodGroup: kind(SCHEDULER, 'PodGroup', 'podgroups', 'PodGroup', 'PodGroup'),
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

/** The training jobs, in the order of the 创建 Job menu. TensorFlowJob is a misnomer of early documents and kept readable. */
export const JOB_KINDS: readonly Kind[] = [
  KINDS.PyTorchTrainingJob,
  KINDS.TensorFlowTrainingJob,
  KINDS.PyTorchJob,
  KINDS.TFJob,
  KINDS.TensorFlowJob,
]

export const kindNamed = (name: string | undefined, apiVersion?: string): Kind | undefined =>
  Object.values<Kind>(KINDS).find(
    (known) => known.kind === name && (apiVersion === undefined || known.apiVersion === apiVersion),
  )

export const kindOfPlural = (plural: string | undefined): Kind | undefined =>
  Object.values<Kind>(KINDS).find((known) => known.plural === plural)
