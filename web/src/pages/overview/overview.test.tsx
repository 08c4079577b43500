/** The overview: how many there are of each and how they are, and what of the quota is left. */
import { act, screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../kube'
import { claim, ended, event, notebook, pod, unscheduled } from '../../testing/objects'
import { open, server } from '../../testing/page'

const quota = (hard: object, used: object): KubeObject => ({ apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard }, status: { hard, used } }) as KubeObject
const card = (to: string): HTMLElement => document.querySelector<HTMLElement>(`.overview-cards a[href="/build/default/${to}"]`)!

describe.each([
  ['en', '1 running', '1 waiting', '1 failed', 'You may not see these'],
  ['zh', '1 个运行中', '1 个等待中', '1 个失败', '没有查看权限'],
] as const)('cards (%s)', (language, busy, waiting, failed, refused) => {
  it('count what there is, and say how it is', async () => {
    server.put(pod('runs'), pod('waits', unscheduled('0/1 nodes are available')), pod('broken', ended(1)), pod('done', ended(0)), claim('data'))
    open('/build/default/overview', language)
    await waitFor(() => expect(card('pods').textContent).toContain('4'))
    expect(within(card('pods')).getByText(busy)).toBeTruthy()
    expect(within(card('pods')).getByText(waiting)).toBeTruthy()
    expect(within(card('pods')).getByText(failed)).toBeTruthy()
    expect(card('volumes').textContent).toContain('1')
    expect(card('notebooks').textContent).toContain('0')
  })

  it('say which may not be seen instead of that there are none', async () => {
    server.forbid('secrets')
    open('/build/default/overview', language)
    await waitFor(() => expect(card('secrets').textContent).toContain(refused))
    expect(card('secrets').textContent).toContain('-')
  })
})

it('counts follow what happens, and lead to the list', async () => {
  const user = open('/build/default/overview')
  await waitFor(() => expect(card('notebooks').textContent).toContain('0'))
  act(() => server.put(notebook('nb', 'Running')))
  await waitFor(() => expect(card('notebooks').textContent).toContain('1'))
  await user.click(card('notebooks'))
  expect(await screen.findByRole('link', { name: 'nb' })).toBeTruthy()
})

it('events of the whole project say which object they are about', async () => {
  server.put(pod('broken', ended(1)), event('Pod', 'broken', 'BackOff', 'Back-off restarting failed container main in pod broken'))
  open('/build/default/overview?tab=events')
  expect(await screen.findByRole('link', { name: /broken/ })).toBeTruthy()
})

describe('the quota', () => {
  it.each([
    ['en', '6.00 of 10.00', '90 % used, close to the limit', 'Used up: new work will be refused'],
    ['zh', '6.00 / 10.00', '已使用 90%，接近上限', '已用完：新的工作负载会被拒绝'],
  ] as const)('warns before it is used up, and when it is (%s)', async (language, amount, nearly, full) => {
    server.put(quota({ 'requests.cpu': '10', 'requests.memory': '10Gi', pods: '4' }, { 'requests.cpu': '6', 'requests.memory': '9Gi', pods: '4' }))
    open('/build/default/overview?tab=quota', language)
    expect(await screen.findByText(amount)).toBeTruthy()
    expect(screen.getAllByRole('status').map((each) => each.textContent)).toEqual(expect.arrayContaining([nearly, full]))
    expect(screen.getAllByRole('progressbar').map((each) => each.getAttribute('aria-valuenow'))).toEqual(['60', '90', '100'])
  })

  it('is not there: then it says what the project uses', async () => {
    server.put(pod('one'), pod('two'), pod('over', ended(0)))
    open('/build/default/overview?tab=quota')
    expect(await screen.findByText('Project default has no quota: it may use whatever is free in the cluster.')).toBeTruthy()
    const mine = await screen.findByRole('region', { name: 'What this project uses' })
    await waitFor(() => expect(mine.textContent).toContain('1.00'))
    expect(mine.textContent).toContain('2.00Gi')
  })
})
