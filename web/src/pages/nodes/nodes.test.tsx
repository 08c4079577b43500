/** Nodes: what each has and has given away, its page, and stopping new pods. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../kube'
import { ended, pod } from '../../testing/objects'
import { open, server } from '../../testing/page'
import { refusal } from '../../testing/server'

const node = (name: string, more: object = {}, spec: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, labels: { 'node-role.kubernetes.io/worker': '' } },
  spec,
  status: {
    conditions: [{ type: 'Ready', status: 'True' }],
    capacity: { cpu: '4', memory: '8Gi', pods: '110', 'nvidia.com/gpu': '2', 'hugepages-2Mi': '0' },
    allocatable: { cpu: '4', memory: '8Gi', pods: '110', 'nvidia.com/gpu': '2' },
    nodeInfo: { kubeletVersion: 'v1.36.3' },
    ...more,
  },
})
const row = (name: string): Promise<HTMLElement> => screen.findByRole('link', { name }).then((link) => link.closest<HTMLElement>('[role=row]')!)
const cells = async (name: string): Promise<(string | null)[]> => within(await row(name)).getAllByRole('cell').map((cell) => cell.textContent)
const gpuPod = (name: string): KubeObject => pod(name, undefined, { containers: [{ name: 'main', image: 'x', resources: { requests: { cpu: '1500m', memory: '2Gi', 'nvidia.com/gpu': '1' } } }] })

describe('the list', () => {
  it('says what each has given away, to pods that have not ended', async () => {
    server.put(node('node-1'), node('node-2', { conditions: [{ type: 'Ready', status: 'False' }] }), gpuPod('trainer'), pod('small'), pod('over', ended(0)))
    open('/build/default/nodes')
    await waitFor(async () => expect(await cells('node-1')).toEqual(expect.arrayContaining(['Ready', '2.00 / 4.00', '3.00Gi / 8.00Gi', '1 / 2', '2 / 110'])))
    expect(await cells('node-2')).toEqual(expect.arrayContaining(['NotReady', '0.00 / 4.00', '0 / 2', '0 / 110']))
  })

  it('says what is used where it is measured', async () => {
    server.put(node('node-1'))
    server.on('GET', /^\/k8s\/apis\/metrics.k8s.io\/v1beta1\/nodes$/, () => ({ items: [{ metadata: { name: 'node-1' }, usage: { cpu: '250m', memory: '1Gi' } }] }))
    open('/build/default/nodes')
    await waitFor(async () => expect(await cells('node-1')).toEqual(expect.arrayContaining(['0.25', '1.00Gi'])))
  })
})

describe('the page', () => {
  it('has the pods of all namespaces, and what of each resource is left', async () => {
    server.put(node('node-1'), gpuPod('trainer'), { ...pod('agent'), metadata: { name: 'agent', namespace: 'kube-system' } })
    const user = open('/build/default/nodes/node-1')
    const gpus = (await screen.findByText('GPU (nvidia.com/gpu)')).closest<HTMLElement>('[role=row]')!
    await waitFor(() => expect(within(gpus).getAllByRole('cell').map((cell) => cell.textContent)).toEqual(['GPU (nvidia.com/gpu)', '2', '2', '1 (50%)']))
    expect(screen.queryByText('hugepages-2Mi')).toBeNull()
    await user.click(screen.getByRole('tab', { name: 'Pods on this node (2)' }))
    expect(await row('trainer')).toBeTruthy()
    expect((await row('agent')).textContent).toContain('kube-system')
  })

  it.each([
    ['en', 'Stop scheduling', 'No new pods are placed on node-1', 'Resume scheduling', 'node-1 takes new pods again'],
    ['zh', '停止调度', '不再向 node-1 调度新的 Pod', '恢复调度', 'node-1 恢复接受新的 Pod'],
  ] as const)('stops new pods and takes them again (%s)', async (language, stop, stopped, resume, resumed) => {
    server.put(node('node-1'))
    const user = open('/build/default/nodes/node-1', language)
    await user.click(await screen.findByRole('button', { name: stop }))
    expect(await screen.findByText(stopped)).toBeTruthy()
    await user.click(await screen.findByRole('button', { name: resume }))
    expect(await screen.findByText(resumed)).toBeTruthy()
    expect(server.written('PATCH', 'nodes')).toEqual([{ spec: { unschedulable: true } }, { spec: { unschedulable: null } }])
  })

  it('says that the person may not', async () => {
    server.put(node('node-1'))
    server.on('PATCH', /nodes\/node-1$/, () => refusal(403, 'nodes "node-1" is forbidden: User "jane" cannot patch resource "nodes" in API group "" at the cluster scope'))
    const user = open('/build/default/nodes/node-1', 'zh')
    await user.click(await screen.findByRole('button', { name: '停止调度' }))
    expect(await screen.findByText('用户 jane 没有权限对 nodes 执行 patch')).toBeTruthy()
    expect(screen.getByRole('button', { name: '停止调度' })).toBeTruthy()
  })
})
