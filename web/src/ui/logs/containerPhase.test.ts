import { expect, it } from 'vitest'
import type { KubeObject } from '../../kube'
import { containerPhase } from './containerPhase'

interface Case {
  policy?: string
  phase?: string
  leaving?: boolean
  state?: object
  lastState?: object
  restartCount?: number
}

const pod = ({ policy = 'Always', phase = 'Running', leaving = false, ...status }: Case): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', uid: 'u', ...(leaving ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}) },
  spec: { restartPolicy: policy, initContainers: [{ name: 'i' }, { name: 's', restartPolicy: 'Always' }], containers: [{ name: 'c' }] },
  status: { phase, initContainerStatuses: [{ name: 'i', ...status }, { name: 's', ...status }], containerStatuses: [{ name: 'c', ...status }] },
})
const exit = (exitCode: number): object => ({ terminated: { exitCode, reason: exitCode ? 'Error' : 'Completed' } })

it.each<[string, string, number, boolean]>([
  ['c', 'Always', 0, false],
  ['c', 'OnFailure', 0, true],
  ['c', 'OnFailure', 1, false],
  ['c', 'Never', 1, true],
  ['i', 'Always', 0, true],
  ['i', 'Always', 1, false],
  ['i', 'Never', 1, true],
  ['s', 'Never', 1, false],
])('%s with %s that exits with %i: over %s', (name, policy, code, over) => {
  expect(containerPhase(pod({ policy, state: exit(code) }), name).over).toBe(over)
})

it('is over with its pod, whatever was to come', () => {
  expect(containerPhase(pod({ phase: 'Failed', state: exit(1) }), 'c').over).toBe(true)
  expect(containerPhase(pod({ leaving: true, state: exit(1) }), 'c').over).toBe(true)
  expect(containerPhase(pod({ leaving: true, state: { running: {} } }), 'c').over).toBe(false)
})

it('tells why it does not run', () => {
  const waiting = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 10s' } }
  expect(containerPhase(pod({ state: waiting, lastState: exit(3), restartCount: 2 }), 'c')).toEqual({ start: 'u 2', begun: true, running: false, over: false, message: 'back-off 10s' })
  expect(containerPhase(pod({ state: exit(3) }), 'c')).toMatchObject({ message: 'Error', exitCode: 3 })
})

it('takes the first container where none is named, and a pod without statuses for one that has not begun', () => {
  expect(containerPhase(pod({ state: { running: {} } }), undefined)).toMatchObject({ start: 'u 0', running: true, over: false })
  expect(containerPhase({ ...pod({}), status: {} }, 'c')).toEqual({ start: 'u 0', begun: false, running: false, over: false, message: 'Pending' })
})

it('tells why a pod has no node', () => {
  const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes are available: 1 Insufficient cpu.' }]
  expect(containerPhase({ ...pod({}), status: { phase: 'Pending', conditions } }, 'c')).toMatchObject({ begun: false, over: false, message: '0/1 nodes are available: 1 Insufficient cpu.' })
})
