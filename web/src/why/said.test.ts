import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import * as chinese from './chinese'
import { sayMessage, sayReason } from './said'

// What the kinds' controllers say in every situation that is kept as an example.
const examples = import.meta.glob<string>('../../../tests/kinds/*/*.output.yaml', { query: '?raw', import: 'default', eager: true })

interface Told {
  reason: string
  message: string
}

function toldIn(text: string): Told[] {
  const output = parse(text) as { status?: { conditions?: Partial<Told>[] }; events?: string[] }
  const events = (output.events ?? []).map((line) => /^(?:Normal|Warning) (\w+): ([\s\S]*)$/.exec(line)!).map(([, reason, message]) => ({ reason: reason!, message: message! }))
  return [...(output.status?.conditions ?? []).map(({ reason = '', message = '' }) => ({ reason, message })), ...events]
}

const told = new Map(Object.values(examples).flatMap(toldIn).map((each) => [`${each.reason}: ${each.message}`, each]))

describe('what the controllers say', () => {
  it('is found', () => expect(told.size).toBeGreaterThan(80))

  it.each([...told.values()])('has Chinese: $reason: $message', ({ reason, message }) => {
    if (reason && reason !== '-') expect(sayReason(reason, chinese), reason).toMatch(/\p{Script=Han}/u)
    if (message) expect(sayMessage(message, chinese), message).toMatch(/\p{Script=Han}/u)
  })
})

describe('what a cluster says', () => {
  it.each([
    ['Successfully assigned demo/mnist-0 to big', '已将 mnist-0 调度到节点 big'],
    ['0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.', '3 个节点都不可用：1 个节点有不能容忍的污点，2 个节点的 cpu 不足；抢占：3 个节点都不可用：3 个节点上抢占也无济于事'],
    ['Pod mnist-0: persistentvolumeclaim "data" not found; `kubectl get pvc` shows those that are there; make it, or name another (and 1 more)', '副本 mnist-0：持久卷 data 不存在；`kubectl get pvc` 列出已有的：请创建它，或改用已有的（另有 1 个相同）'],
    ['0/1 nodes are available for all 4 pods of group mnist: 8 cpu asked at once, 2 free. 3 pods of lower queues must end first.', '1 个节点放不下组 mnist 的全部 4 个副本：共需 cpu 8，只空闲 2；要先结束 3 个其他 Pod'],
    ['0/1 nodes are available for all 2 pods of group g, and never will be as they are: g-0 asks for 64 cpu, no node has more than 16.', '1 个节点永远放不下组 g 的全部 2 个副本：g-0 需要 cpu 64，每个节点最多只有 16'],
    ['group mnist waits for quota of queue small: 2 nvidia.com/gpu asked at once, 1 of 4 left', 'mnist 在等待队列 small 的配额：共需 nvidia.com/gpu 2，4 中还剩 1'],
    ['Error creating: pods "j-0" is forbidden: exceeded quota: q, requested: cpu=4, used: cpu=8, limited: cpu=10', '创建失败：不能创建 Pod j-0：超出配额 q：申请 cpu=4，已用 cpu=8，上限 cpu=10'],
    ['Back-off pulling image "nope:1": ErrImagePull: failed to pull image "nope:1": timeout', '拉取镜像 nope:1 失败，稍后重试：无法拉取镜像 nope:1：timeout'],
    ['Error: ImagePullBackOff', '错误：镜像拉取失败，等待重试'],
    ['MountVolume.SetUp failed for volume "v" : secret "hidden" not found', '存储卷 v 挂载失败：secret hidden 不存在'],
    ['create Pod nb-0 in StatefulSet nb failed error: pods "nb-0" is forbidden: failed quota: q: must specify requests.cpu', '无法创建 Pod nb-0：不能创建 Pod nb-0：配额 q 要求写明 requests.cpu'],
    ['PyTorchTrainingJob j has failed: j-0 failed with exit code 1\nTraceback\nModuleNotFoundError: no', 'PyTorchTrainingJob j 失败：j-0 以退出码 1 失败\nTraceback\nModuleNotFoundError: no'],
    ['PyTorchJob simple is failed because 1 Worker replica(s) failed.\nPod simple-worker-0 ended with exit code 3; its last lines:\nbad data', 'PyTorchJob simple 失败：1 个 Worker 副本失败\n副本 simple-worker-0 以退出码 3 结束；最后几行日志：\nbad data'],
  ])('%s', (message, said) => expect(sayMessage(message, chinese)).toBe(said))

  it.each([
    ['jobs.batch "x" already exists', '已经有名为 x 的对象'],
    ["Invalid value: \"X_y\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', …", '"X_y" 无效：只能使用小写字母、数字、“-”和“.”，以字母或数字开头和结尾'],
    ["Invalid value: \"abc\": spec.replicaSpecs[0].limits.cpu in body should match '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))$'", '"abc" 无效：应为数量，例如 500m、2、4Gi'],
    ['Invalid value: "string": spec.replicas in body must be of type integer: "string"', '"string" 无效：类型应为 integer，却是 string'],
    ["pytorchtrainingjobs.batch.tensorstack.dev \"inq\" is forbidden: ValidatingAdmissionPolicy 'queue-rights.danlu.dev' with binding 'queue-rights.danlu.dev' denied request: R001: namespace default may not use queue vip: the queue's namespaceSelector does not select it. `kubectl get q -n t9k-system` shows the queues", '不能创建 inq：命名空间 default 不能使用队列 vip：队列的 namespaceSelector 没有选中它（策略 queue-rights.danlu.dev）'],
    ['PyTorchTrainingJob in version "v1beta1" cannot be handled as a PyTorchTrainingJob: strict decoding error: unknown field "spec.foo"', 'PyTorchTrainingJob 的内容有误：没有 spec.foo 这个字段，请检查拼写和缩进'],
    ['Unsupported value: "Foo": supported values: "ReadOnlyMany", "ReadWriteMany"', '不支持 "Foo"，可用的值："ReadOnlyMany", "ReadWriteMany"'],
    ['persistentvolumeclaims "big" is forbidden: exceeded quota: q, requested: requests.storage=5Gi, used: requests.storage=0, limited: requests.storage=2Gi', '不能创建 big：超出配额 q：申请 requests.storage=5Gi，已用 requests.storage=0，上限 requests.storage=2Gi'],
  ])('of what it refuses: %s', (message, said) => expect(sayMessage(message, chinese)).toBe(said))

  it('is left alone where it is not known', () => {
    expect(sayMessage('quux has frobbed', chinese)).toBeUndefined()
    expect(sayReason('Frobbed', chinese)).toBeUndefined()
  })

  it('has reasons that begin with the kind', () => expect(sayReason('TFJobRestarting', chinese)).toBe('正在重启'))

  it('fills every hole of a rule', () => {
    for (const [pattern, words] of chinese.rules) {
      const groups = new RegExp(`${pattern.source}|`).exec('')!.length - 1
      for (const [, which] of words.matchAll(/[$@](\d)/g)) expect(Number(which), pattern.source).toBeLessThanOrEqual(groups)
      expect(pattern.source.startsWith('^') && pattern.source.endsWith('$'), pattern.source).toBe(true)
    }
  })
})
