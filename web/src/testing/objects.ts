/** Objects as the API has them, for component tests. */
import type { KubeObject } from '../kube/types'

export const configMap = (name: string, metadata: object = {}): KubeObject => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data: { key: 'value' } })

export const claim = (name: string, size = '10Gi', metadata: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, ...metadata },
  spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: size } } },
  status: { phase: 'Bound', capacity: { storage: size } },
})

export const namespace = (name: string): KubeObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })

export const project = (name: string): KubeObject => ({ apiVersion: 'tensorstack.dev/v1beta1', kind: 'Project', metadata: { name, namespace: name } })

/** With one container, main, that runs; `status` says otherwise. */
export const pod = (name: string, status: object = running(), spec: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { restartPolicy: 'Never', nodeName: 'node-1', containers: [{ name: 'main', image: 'busybox', resources: { requests: { cpu: '500m', memory: '1Gi' } } }], ...spec },
  status,
})

export const running = (restartCount = 0): object => ({ phase: 'Running', containerStatuses: [{ name: 'main', ready: true, restartCount, state: { running: {} } }] })

export const ended = (exitCode: number, reason = exitCode ? 'Error' : 'Completed', restartCount = 0): object => ({
  phase: exitCode ? 'Failed' : 'Succeeded',
  containerStatuses: [{ name: 'main', ready: false, restartCount, state: { terminated: { exitCode, reason } } }],
})

export const unscheduled = (message: string): object => ({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] })

export const job = (name: string, ...conditions: object[]): KubeObject => ({
  apiVersion: 'kubeflow.org/v1',
  kind: 'PyTorchJob',
  metadata: { name },
  spec: { pytorchReplicaSpecs: { Worker: { replicas: 2, template: { spec: { containers: [{ name: 'pytorch', image: 'torch', resources: { limits: { cpu: '2', memory: '4Gi', 'nvidia.com/gpu': '1' } } }] } } } } },
  status: { conditions },
})

export const notebook = (name: string, phase: string, spec: object = {}, conditions: object[] = []): KubeObject => ({
  apiVersion: 'tensorstack.dev/v1beta1',
  kind: 'Notebook',
  metadata: { name },
  spec: { type: 'jupyter', template: { spec: { containers: [{ name: 'notebook', image: 'torch', resources: { requests: { cpu: '500m', memory: '512Mi' }, limits: { cpu: '2', memory: '1Gi' } } }] } }, ...spec },
  status: { phase, conditions },
})

/** About an object of that kind and name, which `put` gave its uid. */
export const event = (kind: string, of: string, reason: string, message: string, more: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name: `${of}.${reason}` },
  involvedObject: { kind, name: of, namespace: 'default', uid: `uid-${of}` },
  type: 'Warning',
  reason,
  message,
  lastTimestamp: '2026-01-02T03:04:05Z',
  ...more,
})
