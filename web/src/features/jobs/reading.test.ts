import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../kube/types'
import { copyName } from '../../kinds/copyName'
import { claimsOf, isPaused, otherVolumesOf, pausePatch, replicasOf, rolesOf, schedulingOf, sumOf } from './reading'

const container = { name: 'pytorch', image: 'pytorch/pytorch', resources: { requests: { cpu: '500m' }, limits: { cpu: '1', memory: '2Gi', 'nvidia.com/gpu': '1' } } }

const tensorstack: KubeObject = {
  apiVersion: 'batch.tensorstack.dev/v1beta1',
  kind: 'PyTorchTrainingJob',
  metadata: { name: 'mnist', namespace: 'demo', uid: '1' },
  spec: {
    scheduler: { t9kScheduler: { queue: 'default' } },
    runMode: { pause: { enable: true } },
    replicaSpecs: [
      { type: 'master', replicas: 1, template: { spec: { containers: [container], volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'mnist' } }] } } },
      { type: 'worker', replicas: 3, template: { spec: { containers: [container], volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'mnist' } }, { name: 'dshm', emptyDir: {} }] } } },
    ],
  },
  status: {
    tasks: [
      { type: 'master', replicas: [{ name: 'mnist-abcde-master-0', phase: 'Running' }] },
      { type: 'worker', replicas: [{ name: 'mnist-abcde-worker-0', phase: 'Deleted', containers: [{ name: 'pytorch', exitCode: 1 }] }, { name: 'mnist-abcde-worker-1', phase: 'Running' }] },
    ],
  },
}

const kubeflow: KubeObject = {
  apiVersion: 'kubeflow.org/v1',
  kind: 'PyTorchJob',
  metadata: { name: 'simple', namespace: 'demo', uid: '2' },
  spec: {
    runPolicy: { suspend: false },
    pytorchReplicaSpecs: { Worker: { replicas: 2, template: { spec: { containers: [container] } } }, Master: { template: { spec: { containers: [container] } } } },
  },
}

const pod = (name: string, labels: Record<string, string>): KubeObject => ({ kind: 'Pod', metadata: { name, labels } })

describe('a job of any kind', () => {
  it('has roles in the order of ranks', () => {
    expect(rolesOf(tensorstack).map((role) => [role.name, role.replicas])).toEqual([['master', 1], ['worker', 3]])
    expect(rolesOf(kubeflow).map((role) => [role.name, role.replicas])).toEqual([['Master', 1], ['Worker', 2]])
  })

  it('counts an elastic job by its status', () => {
    const elastic = { ...tensorstack, spec: { ...tensorstack.spec, elastic: { enabled: true } } }
    expect(rolesOf(elastic).map((role) => role.replicas)).toEqual([1, 2])
  })

  it('sums what all replicas ask for', () => {
    const sum = sumOf(tensorstack)
    expect([sum.requests.cpu, sum.limits.cpu, sum.limits.memory, sum.requests['nvidia.com/gpu']]).toEqual([2, 4, 8 * 2 ** 30, 4])
  })

  it('says how it is scheduled', () => {
    expect(schedulingOf(tensorstack)).toEqual({ scheduler: 't9k', queue: 'default', priority: '0' })
    expect(schedulingOf(kubeflow).scheduler).toBe('default')
  })

  it('names its volumes once', () => {
    expect(claimsOf(tensorstack)).toEqual(['mnist'])
    expect(otherVolumesOf(tensorstack)).toEqual(['dshm (emptyDir)'])
  })

  it('is paused in the words of its kind', () => {
    expect([isPaused(tensorstack), isPaused(kubeflow)]).toEqual([true, false])
    expect(pausePatch(tensorstack, false)).toEqual({ spec: { runMode: { pause: { enabled: false } } } })
    expect(pausePatch(kubeflow, true)).toEqual({ spec: { runPolicy: { suspend: true } } })
  })
})

describe('replicas', () => {
  it('keep those that are gone but listed in the status', () => {
    const pods = [
      pod('mnist-abcde-worker-1', { 'replica-type': 'worker', 'replica-index': '1' }),
      pod('mnist-abcde-master-0', { 'replica-type': 'master', 'replica-index': '0' }),
    ]
    const replicas = replicasOf(tensorstack, pods)
    expect(replicas.map((each) => [each.name, each.rank, each.pod !== undefined])).toEqual([
      ['mnist-abcde-master-0', 0, true],
      ['mnist-abcde-worker-0', 1, false],
      ['mnist-abcde-worker-1', 2, true],
    ])
    expect(replicas[1]!.told?.containers?.[0]?.exitCode).toBe(1)
  })

  it("take Kubeflow's role names from the job", () => {
    const pods = [
      pod('simple-worker-1', { 'training.kubeflow.org/replica-type': 'worker', 'training.kubeflow.org/replica-index': '1' }),
      pod('simple-master-0', { 'training.kubeflow.org/replica-type': 'master', 'training.kubeflow.org/replica-index': '0' }),
    ]
    expect(replicasOf(kubeflow, pods).map((each) => [each.role, each.index, each.rank])).toEqual([['Master', 0, 0], ['Worker', 1, 2]])
  })
})

it('a copy gets a free name', () => {
  expect(copyName('mnist', new Set(['mnist', 'mnist-2']))).toBe('mnist-3')
  expect(copyName('mnist-2', new Set(['mnist-2']))).toBe('mnist-3')
})
