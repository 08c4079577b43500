/** Pages of single objects: what is said while they are not there, why they wait, what happened to them, their YAML. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { claim, configMap, ended, event, pod, unscheduled } from '../../testing/objects'
import { LANGUAGES, open, server } from '../../testing/page'
import { refusal, neverAnswers } from '../../testing/server'

const WORDS = {
  en: {
    loading: 'Loading box…',
    gone: 'ConfigMap box does not exist',
    failed: 'Could not be loaded',
    refused: 'You have no right to do so: configmaps is forbidden: User "jane" cannot list resource "configmaps" in API group "" in the namespace "default"',
    deleted: 'This object has just been deleted; this is how it was.',
    cause: /Cause: Pod big can never run here: it asks for 500Gi memory, and no node has more than 24Gi/,
    next: /Next step: Waiting does not help: ask for at most 24Gi/,
    last: 'The last lines of the log (big)',
    events: 'Events',
    noEvents: 'Nothing to show',
    eventsRefused: /^You have no right to do so: events is forbidden/,
    warnings: 'Warnings only',
    backOff: /^Back-off restarting failed container main/,
    since: '2 Jan 2026, ',
  },
  zh: {
    loading: '正在载入 box…',
    gone: 'ConfigMap box 不存在',
    failed: '未能载入',
    refused: '您没有权限：用户 jane 在项目 default 中没有权限对 configmaps 执行 list',
    deleted: '这个对象刚刚被删除，下面是它最后的样子。',
    cause: /原因: big 永远无法运行：它需要 500Gi 的 memory，而每个节点最多只有 24Gi/,
    next: /下一步: 等待没有用：请把请求值降到 24Gi 以内/,
    last: '日志的最后几行 (big)',
    events: '事件',
    noEvents: '没有可展示的条目',
    eventsRefused: '您没有权限：用户 jane 在项目 default 中没有权限对 events 执行 list',
    warnings: '只看警告',
    backOff: /容器.*(失败|退避)/,
    since: '2026年1月2日 ',
  },
} as const

/** What stands above the page. */
const told = (): string => screen.getAllByRole('status').map((each) => each.textContent).join('\n')

describe.each(LANGUAGES)('the page of an object (%s)', (language) => {
  const words = WORDS[language]

  it('says that it is being loaded', async () => {
    server.on('GET', /configmaps$/, neverAnswers)
    open('/build/default/configmaps/box', language)
    expect(await screen.findByRole('status', { name: words.loading })).toBeTruthy()
  })

  it('says that there is no such object', async () => {
    open('/build/default/configmaps/box', language)
    expect(await screen.findByRole('heading', { level: 1, name: words.gone })).toBeTruthy()
  })

  it('says that the person may not see it, not that it does not exist', async () => {
    server.forbid('configmaps')
    open('/build/default/configmaps/box', language)
    expect(await screen.findByRole('heading', { level: 1, name: words.failed })).toBeTruthy()
    expect(screen.getByText(words.refused)).toBeTruthy()
  })

  it('stays when the object is deleted, and says so', async () => {
    server.put(configMap('box'))
    open('/build/default/configmaps/box', language)
    await screen.findByRole('heading', { level: 1, name: 'box' })
    server.remove(configMap('box'))
    expect(await screen.findByText(words.deleted)).toBeTruthy()
    expect(screen.getByRole('heading', { level: 1, name: 'box' })).toBeTruthy()
  })

  it('says why it waits, and what to do', async () => {
    server.put(pod('big', ended(1)))
    server.on('POST', /explain$/, () => ({ causes: [{ code: 'DL-NEVER-FITS', params: { pod: 'big', container: 'main', resource: 'memory', asked: '500Gi', most: '24Gi' } }] }))
    open('/build/default/pods/big', language)
    await waitFor(() => expect(told()).toMatch(words.cause))
    expect(told()).toMatch(words.next)
  })

  it('tells of its events, those of others left out', async () => {
    server.put(pod('big'), pod('other'))
    server.put(event('Pod', 'big', 'BackOff', 'Back-off restarting failed container main in pod big_default(uid-big)', { count: 4 }))
    server.put(event('Pod', 'big', 'Started', 'Started container main', { type: 'Normal' }), event('Pod', 'other', 'Killing', 'Stopping container main'))
    const user = open('/build/default/pods/big', language)
    const table = (await screen.findByText(words.backOff)).closest('table')!
    expect(within(table).getAllByRole('row')).toHaveLength(3) // one is the header
    expect(table.textContent).toContain('(×4)')
    expect(table.textContent).toContain(words.since)
    expect(table.textContent).not.toContain('Stopping')
    await user.click(screen.getByRole('checkbox', { name: words.warnings }))
    await waitFor(() => expect(within(table).getAllByRole('row')).toHaveLength(2))
  })

  it('does not take events that may not be seen for none', async () => {
    server.put(pod('big'))
    server.forbid('events')
    open('/build/default/pods/big', language)
    const section = (await screen.findByRole('heading', { level: 2, name: words.events })).closest('section')!
    expect(await within(section).findByText(words.eventsRefused)).toBeTruthy()
  })
})

describe('what the cluster said in English', () => {
  it('stands below its Chinese when asked for', async () => {
    const message = 'Back-off restarting failed container main in pod big_default(uid-big)'
    server.put(pod('big'), event('Pod', 'big', 'BackOff', message))
    const user = open('/build/default/pods/big', 'zh')
    await screen.findByText(WORDS.zh.backOff)
    expect(screen.queryByText(message)).toBeNull()
    const section = screen.getByRole('heading', { level: 2, name: '事件' }).closest('section')!
    await user.click(within(section).getByRole('checkbox', { name: '显示原文' }))
    expect((await screen.findByText(message)).lang).toBe('en')
  })
})

describe('a cause', () => {
  it('of the object itself is said while the server has no answer', async () => {
    const causes = [{ code: 'DL-ROOM', params: { pod: 'big', asked: 'cpu 4', message: '0/1 nodes are available: 1 Insufficient cpu.' } }]
    server.on('POST', /explain$/, () => refusal(500, 'x'))
    const job = { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', metadata: { name: 'j' }, spec: {}, status: { conditions: [{ type: 'Blocked', status: 'True', message: 'x', causes }] } }
    server.put(job)
    open('/build/default/jobs/pytorchjobs/j')
    await waitFor(() => expect(told()).toMatch(/Cause: Pod big waits: no node has room for it now; it asks for cpu 4/))
  })

  it('is asked for anew when something of the object changes, and goes when all is well', async () => {
    server.on('POST', /explain$/, ({ body }) => {
      const { object } = body as { object: { status: { phase: string } } }
      return { causes: object.status.phase === 'Pending' ? [{ code: 'DL-ROOM', params: { pod: 'slow', message: 'm' } }] : [] }
    })
    server.put(pod('slow', unscheduled('0/1 nodes are available: 1 Insufficient cpu.')))
    open('/build/default/pods/slow')
    await waitFor(() => expect(told()).toMatch(/Pod slow waits/))
    server.put(pod('slow'))
    await waitFor(() => expect(told()).not.toMatch(/Pod slow waits/))
  })

  it('shows the end of the log of the container that failed', async () => {
    server.on('POST', /explain$/, () => ({ causes: [{ code: 'DL-EXIT', params: { pod: 'big', container: 'main', exit_code: 1 } }] }))
    server.on('GET', /pods\/big\/log$/, ({ query }) => new Response(query.get('tailLines') === '12' ? 'Traceback\nMemoryError\n' : ''))
    server.put(pod('big', ended(1)))
    open('/build/default/pods/big', 'zh')
    expect(await screen.findByText(WORDS.zh.last)).toBeTruthy()
    expect(screen.getByText(/MemoryError/).textContent).toBe('Traceback\nMemoryError')
  })
})

describe('enlarging a volume', () => {
  it.each([
    ['much', 'A quantity is needed, such as 500m, 2 or 4Gi'],
    ['5Gi', 'It must be more than the 10Gi of now'],
  ])('to %s is refused beside the field', async (size, told) => {
    server.put(claim('data'))
    const user = open('/build/default/volumes/data')
    await user.click(await screen.findByRole('button', { name: 'Expand' }))
    const field = await screen.findByRole('textbox', { name: 'Size' })
    await user.clear(field)
    await user.type(field, `${size}{Enter}`)
    expect(await screen.findByText(told)).toBeTruthy()
    expect(server.written('PATCH', 'persistentvolumeclaims')).toEqual([])
  })

  it('asks the server, and gives focus back', async () => {
    server.put(claim('data'))
    const user = open('/build/default/volumes/data')
    const button = await screen.findByRole('button', { name: 'Expand' })
    await user.click(button)
    const field = await screen.findByRole('textbox', { name: 'Size' })
    await user.clear(field)
    await user.type(field, '20Gi{Enter}')
    expect(await screen.findByText('Asked for 20Gi')).toBeTruthy()
    expect(server.written('PATCH', 'persistentvolumeclaims')).toEqual([{ spec: { resources: { requests: { storage: '20Gi' } } } }])
    await waitFor(() => expect(document.activeElement).toBe(button))
  })
})
