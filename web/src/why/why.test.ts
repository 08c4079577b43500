import { describe, expect, it } from 'vitest'
import { fill } from '../i18n/words'
import type { KubeObject } from '../kube/types'
import type { Cause } from './table'
import { carried, byMessage, sayAll, storedCauses, why } from './why'

const zh = (answer: ReturnType<typeof why>): string => (answer ? fill(answer.cause.zh, answer.parameters) : '')
const en = (answer: ReturnType<typeof why>): string => (answer ? fill(answer.cause.en, answer.parameters) : '')
const job = (phase: string, ...conditions: object[]): KubeObject => ({ kind: 'PyTorchTrainingJob', metadata: { name: 'j', uid: 'j' }, status: { phase, conditions } })
const kubeflow = (...conditions: object[]): KubeObject => ({ kind: 'PyTorchJob', metadata: { name: 'j', uid: 'j' }, status: { conditions } })

describe('why, in a list', () => {
  it('has nothing to say of what runs or has succeeded', () => {
    expect(why(job('Running'))).toBeUndefined()
    expect(why(job('Succeeded'))).toBeUndefined()
    expect(why(kubeflow({ type: 'Running', status: 'True' }))).toBeUndefined()
  })

  it('says of what is on its way that it is, and nothing of that once it runs', () => {
    const waits = { type: 'Running', status: 'False', message: '1 of 2 pods are running.', causes: [{ code: 'DL-JOB-PODS-RUN', params: { running: 1, all: 2 } }] }
    expect(zh(why(job('Pending', waits)))).toBe('2 个副本中有 1 个在运行')
    expect(why(job('Pending', waits))?.failed).toBe(false)
    expect(why(job('Running', waits))).toBeUndefined()
  })

  it('says that a job runs in part, and what keeps the rest', () => {
    const causes = [{ code: 'DL-PARTIAL', params: { running: 2, wanted: 4 } }, { code: 'DL-ROOM', params: { pod: 'j-2', asked: 'cpu 4', message: '0/1 nodes are available: 1 Insufficient cpu', more: 1 } }]
    const partly = { message: 'x', causes }
    for (const each of [job('Running', { type: 'Running', status: 'False', ...partly }), kubeflow({ type: 'Blocked', status: 'True', ...partly }, { type: 'Running', status: 'True' })]) {
      expect(zh(why(each))).toBe('4 个副本中只有 2 个在运行，它们在等待其余的副本；j-2 在等待：目前没有节点放得下它（需要 cpu 4）：0/1 nodes are available: 1 Insufficient cpu（另有 1 个相同）')
      expect(why(each)?.parameters.message).toBe('0/1 nodes are available: 1 Insufficient cpu')
    }
  })

  it('says that memory ran out, and the limit, not what the program printed last', () => {
    const became = { code: 'DL-JOB-IS-FAILED', params: { kind: 'PyTorchJob', name: 'j', count: 1, role: 'Master' } }
    const causes = [became, { code: 'DL-OOM', params: { pod: 'j-0', container: 'pytorch', limit: '220Mi' }, lines: 1 }]
    const answer = why(kubeflow({ type: 'Failed', status: 'True', message: 'x\nMiB 220', causes }))
    expect(zh(answer)).toBe('j-0 的容器 pytorch 内存用尽，被系统终止（上限 220Mi）')
    expect(answer?.nextStep.zh).toContain('提高内存上限')
    expect(answer?.log).toEqual({ pod: 'j-0', container: 'pytorch', previous: false })
    expect(answer?.failed).toBe(true)
  })

  it('names a mistyped command in Chinese', () => {
    expect(zh(why(job('Failed', { type: 'Failed', status: 'True', causes: [{ code: 'DL-COMMAND', params: { pod: 'j-0', container: 'main', command: 'pyton', message: 'exec: "pyton"' } }] })))).toBe('j-0 的容器 main 无法启动：找不到要运行的命令 “pyton”')
  })

  it('blames the quota for what the quota keeps away', () => {
    const params = { queue: 'small', left: '1', limit: '4', resource: 'nvidia.com/gpu', pod: 'j-0', asked: '2' }
    expect(zh(why(kubeflow({ type: 'Blocked', status: 'True', message: '0/1 nodes are available: …', causes: [{ code: 'DL-QUEUE-SPENT', params }] })))).toBe('队列 small 的 nvidia.com/gpu 配额 4 还剩 1，j-0 需要 2')
  })

  it('tells what can never fit from what waits, with numbers', () => {
    const answer = sayAll([{ code: 'DL-NEVER-FITS', params: { pod: 'p', resource: 'memory', asked: '500Gi', most: '24Gi' } }])
    expect(zh(answer)).toBe('p 永远无法运行：它需要 500Gi 的 memory，而每个节点最多只有 24Gi')
    expect(answer?.nextStep.zh).toContain('等待没有用')
    expect(answer?.failed).toBe(true)
  })

  it('says causes within causes only so far as ours go, and nothing of what is none', () => {
    let held: object = { code: 'DL-QUEUE-UNSTATED', params: {} }
    for (let depth = 0; depth < 60; depth++) held = { code: 'DL-QUEUE-UNSTATED', params: { resource: held } }
    expect(zh(sayAll([held as Cause])).length).toBeLessThan(2000)
    expect(carried({ metadata: { name: 'p', annotations: { 'danlu.dev/causes': '[null, 7, {"code": 7}, {"code": "constructor"}, {"code": "DL-PAUSED"}]' } } })).toEqual([{ code: 'DL-PAUSED' }])
    expect(sayAll([{ code: 'DL-ROOM', params: { pod: { code: 'toString' } } } as Cause])).toBeDefined()
  })

  it('says what rests', () => {
    expect(en(why(job('Paused')))).toContain('Paused')
    expect(en(why({ kind: 'Notebook', metadata: { name: 'n' }, status: { phase: 'Suspended' } }))).toContain('Suspended')
  })

  it('says that nobody used what rests, where that is why', () => {
    const causes = [{ code: 'DL-IDLE-SUSPENDED', params: { word: 'Notebook', unused: '3h', resume: 'kubectl patch' } }]
    expect(zh(why({ kind: 'Notebook', metadata: { name: 'n' }, status: { phase: 'Suspended', conditions: [{ type: 'Suspended', status: 'True', causes }] } }))).toBe('Notebook 已有 3h 没有人使用，因此被暂停；文件都保留')
  })

  it("says another operator's words as they are, or what is known of them", () => {
    expect(en(why(kubeflow({ type: 'Failed', status: 'True', message: 'the moon is full' })))).toBe('the moon is full')
    const refused = 'pods "j-0" is forbidden: exceeded quota: q, requested: cpu=4, used: cpu=8, limited: cpu=10'
    expect(zh(why(job('Pending', { type: 'Running', status: 'False', message: refused })))).toBe('超出配额 q：申请 cpu=4，已用 cpu=8，上限 cpu=10')
  })

  it('says that an image was replaced, whatever becomes of the job, and once', () => {
    const image = { code: 'DL-IMAGE-UNKNOWN', params: { image: 'me/own:1', environment: 'default' } }
    const replaced = { type: 'ImageSubstituted', status: 'True', message: 'x', causes: [image] }
    const words = '镜像 me/own:1 不在目录中，改用本机的环境 default 运行'
    for (const each of [job('Running', replaced), job('Succeeded', replaced), kubeflow(replaced, { type: 'Running', status: 'True' })]) {
      expect(zh(why(each))).toBe(words)
      expect(why(each)?.failed).toBe(false)
    }
    const lost = { code: 'DL-COMMAND', params: { pod: 'j-0', container: 'main', command: 'x', replaced: image } }
    const failed = why(kubeflow(replaced, { type: 'Failed', status: 'True', causes: [lost] }))
    expect(zh(failed)).toBe(`j-0 的容器 main 无法启动：找不到要运行的命令 “x”。${words}`)
    expect(why(job('Running', { ...replaced, status: 'False' }))).toBeUndefined()
  })

  it('leaves codes of a later version alone', () => {
    expect(storedCauses(job('Running', { type: 'Running', status: 'False', message: 'x', causes: [{ code: 'DL-OF-TOMORROW' }] }))).toEqual([])
  })
})

describe('what an event carries', () => {
  const event = (annotation?: string): KubeObject => ({ metadata: { name: 'e', ...(annotation === undefined ? {} : { annotations: { 'danlu.dev/causes': annotation } }) } })

  it('is an image that was replaced, in Chinese', () => {
    const causes = carried(event(JSON.stringify([{ code: 'DL-IMAGE-UNKNOWN', params: { image: 'me/own:1', environment: 'default' } }])))
    expect(zh(sayAll(causes))).toBe('镜像 me/own:1 不在目录中，改用本机的环境 default 运行')
    expect(sayAll(causes)?.failed).toBe(false)
  })

  it('is nothing where it is damaged or not ours', () => {
    for (const annotation of [undefined, 'no json', '{}', '[{"code":"X"}]']) expect(carried(event(annotation))).toEqual([])
  })
})

describe('what an API server refuses', () => {
  it.each([
    ['pods "two" is forbidden: failed quota: q: must specify cpu for: main', 'every container'],
    ['namespaces "demo" not found', 'There is no project demo'],
    ['spec: Required value', 'spec must be given'],
    ['Invalid value: "string": spec.replicas in body must be of type integer: "string"', 'spec.replicas must be of type integer, and is of type string'],
  ])('%s', (message, words) => expect(en(byMessage(message, ''))).toContain(words))

  it('leaves unknown messages alone', () => expect(byMessage('something else', 'p')).toBeUndefined())
})
