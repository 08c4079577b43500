import { describe, expect, it } from 'vitest'
import { fill } from '../i18n/words'
import type { KubeObject } from '../kube/types'
import { byMessage, why } from './why'

const pod = (status: object, spec: object = {}): KubeObject => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', uid: 'u' }, spec, status })
const unplaced = (message: string): KubeObject => pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }] })
const zh = (answer: ReturnType<typeof why>): string => (answer ? fill(answer.cause.zh, answer.parameters) : '')
const en = (answer: ReturnType<typeof why>): string => (answer ? fill(answer.cause.en, answer.parameters) : '')

describe('why', () => {
  it('has nothing to say of what runs', () => {
    expect(why(pod({ phase: 'Running', containerStatuses: [{ name: 'c', state: { running: {} } }] }))).toBeUndefined()
  })

  it.each([
    ['0/1 nodes are available: 1 Insufficient cpu.', 'No node has room'],
    ['0/1 nodes are available: 1 Insufficient nvidia.com/gpu.', 'No node has the GPUs'],
    ['persistentvolumeclaim "mnist" not found', 'Volume mnist does not exist'],
    ['queue small is closed: it takes nothing new until it is opened again', 'The queue is closed'],
    ['queue smal does not exist; there are: default, small', 'There is no such queue'],
    ['namespace demo may not use queue small: its namespaceSelector does not select it', 'This project may not use'],
    ['group mnist waits for quota of queue small: 2 nvidia.com/gpu asked at once, 1 of 4 left', 'The quota of the queue'],
    ['0/1 nodes are available for all 3 pods of group g, and never will be as they are: 18 cpu asked at once, 16 exist.', 'will never do'],
    ['group mnist waits for 2 more pods', 'Waits until all replicas'],
    ["0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", 'No node fits'],
  ])('%s', (message, words) => expect(en(why(unplaced(message)))).toContain(words))

  it('explains images in both languages', () => {
    const answer = why(pod({ phase: 'Pending', containerStatuses: [{ name: 'c', image: 'nope:1', state: { waiting: { reason: 'ImagePullBackOff', message: 'no such image' } } }] }))
    expect(zh(answer)).toBe('无法取得镜像 nope:1：no such image')
    expect(answer?.failed).toBe(true)
  })

  it('tells out of memory from a crash, and names the log', () => {
    const ended = (exitCode: number, reason: string) =>
      why(pod({ phase: 'Failed', containerStatuses: [{ name: 'c', state: { terminated: { exitCode, reason } } }] }))
    expect(en(ended(137, 'OOMKilled'))).toContain('ran out of memory')
    expect(en(ended(1, 'Error'))).toContain('failed with code 1')
    expect(en(ended(127, 'Error'))).toContain('not found')
    expect(ended(1, 'Error')?.log).toEqual({ pod: 'p', container: 'c', previous: false })
  })

  it('lets the worst pod speak for the job', () => {
    const job: KubeObject = { apiVersion: 'x/v1', kind: 'PyTorchTrainingJob', metadata: { name: 'j', uid: 'j' }, status: { phase: 'Pending' } }
    const pods = [unplaced('0/1 nodes are available: 1 Insufficient cpu.'), pod({ phase: 'Failed', containerStatuses: [{ name: 'c', state: { terminated: { exitCode: 2 } } }] })]
    expect(en(why(job, pods))).toContain('failed with code 2')
  })

  it('says what keeps some of the replicas of a job that runs', () => {
    const message = 'Pod j-worker-1 cannot be created: pods "j-worker-1" is forbidden: exceeded quota: q'
    const job = (reason: string): KubeObject => ({ kind: 'PyTorchTrainingJob', metadata: { name: 'j' }, status: { phase: 'Running', conditions: [{ type: 'Running', status: 'False', reason, message }] } })
    expect(en(why(job('FailedCreatePod')))).toContain('quota of the project')
    expect(why(job('Other'))).toBeUndefined()
  })

  it('says quota from an event of the job', () => {
    const job: KubeObject = { apiVersion: 'x/v1', kind: 'PyTorchTrainingJob', metadata: { name: 'j', uid: 'j' }, status: { phase: 'Pending' } }
    const event: KubeObject = { metadata: { name: 'e' }, type: 'Warning', message: 'pods "x" is forbidden: exceeded quota: q', involvedObject: { uid: 'j' } }
    expect(en(why(job, [], [event]))).toContain('quota of the project')
  })

  it("reads a job's own conditions when its pods are not at hand", () => {
    const job = (kind: string, condition: object, phase?: string): KubeObject => ({ kind, metadata: { name: 'j' }, status: { ...(phase ? { phase } : {}), conditions: [condition] } })
    const waits = 'Pod j-1-worker-0: 0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling. (and 1 more)'
    const room = 'No node has room for j-1-worker-0: 0/1 nodes are available: 1 Insufficient cpu. (and 1 more)'
    expect(en(why(job('PyTorchTrainingJob', { type: 'Running', status: 'False', message: waits }, 'Pending')))).toBe(room)
    expect(en(why(job('PyTorchJob', { type: 'Blocked', status: 'True', message: waits })))).toBe(room)
    const died = 'PyTorchTrainingJob j has failed: j-1-master-0 failed with exit code 1\nTraceback\nModuleNotFoundError: no'
    expect(en(why(job('PyTorchTrainingJob', { type: 'Failed', status: 'True', message: died }, 'Failed')))).toBe('Exit code 1: ModuleNotFoundError: no (j-1-master-0)')
    const image = 'Pod j-1-worker-0, container pytorch: Back-off pulling image "nope:1": ErrImagePull: failed to resolve image "nope:1"'
    expect(en(why(job('PyTorchTrainingJob', { type: 'Running', status: 'False', message: image }, 'Pending')))).toContain('Image nope:1 cannot be had')
    const lost = 'Pod[j-1-worker-3] exited with error code 143'
    expect(en(why(job('PyTorchTrainingJob', { type: 'ReplicaFailure', status: 'True', message: lost }, 'Running')))).toContain('Replica j-1-worker-3 failed with exit code 143')
    const ended = 'PyTorchJob j is failed because 1 Master replica(s) failed.\nPod j-master-0 ended with exit code 3.'
    expect(zh(why(job('PyTorchJob', { type: 'Failed', status: 'True', message: ended })))).toBe('退出码 3，没有留下日志（j-master-0）')
  })

  it('knows paused and waiting claims', () => {
    expect(en(why({ kind: 'PyTorchTrainingJob', metadata: { name: 'j' }, status: { phase: 'Paused' } }))).toContain('Paused')
    const claim: KubeObject = { kind: 'PersistentVolumeClaim', metadata: { name: 'c', uid: 'c' }, spec: {}, status: { phase: 'Pending' } }
    expect(en(why(claim, [], [{ metadata: { name: 'e' }, reason: 'WaitForFirstConsumer', involvedObject: { uid: 'c' } }]))).toContain('first pod')
  })

  it('says what a quota asks of a container', () => {
    expect(en(byMessage('pods "two" is forbidden: failed quota: q: must specify cpu for: main', 'two'))).toContain('every container')
  })

  it('leaves unknown messages alone', () => expect(byMessage('something else', 'p')).toBeUndefined())

  it('tells what keeps a StatefulSet from making the pod of a notebook', () => {
    const notebook = { kind: 'Notebook', metadata: { name: 'nb', uid: 'n' }, status: { conditions: [{ type: 'Ready', status: 'False', message: 'The notebook is being created' }] } }
    const event = { kind: 'Event', metadata: { name: 'e' }, type: 'Warning', reason: 'FailedCreate', message: 'create Pod nb-0 failed: pods "nb-0" is forbidden: failed quota: q: must specify requests.cpu', involvedObject: { uid: 's' } }
    expect(why(notebook, [], [event])?.parameters.message).toContain('must specify requests.cpu')
    expect(why(notebook, [], [])?.cause.en).not.toContain('quota')
  })
})
