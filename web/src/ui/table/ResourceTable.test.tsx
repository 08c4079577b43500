/** Every list, by the example of some: what it says while it has nothing, why it has nothing, and what its rows say. */
import { fireEvent, screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { LANGUAGES, open, pass, server } from '../../testing/page'
import { claim, configMap, ended, job, pod, unscheduled } from '../../testing/objects'
import type { KubeObject } from '../../kube'
import { neverAnswers } from '../../testing/server'

const names = (): string[] => screen.getAllByRole('row').flatMap((row) => within(row).queryAllByRole('link').slice(0, 1)).map((link) => link.textContent ?? '')
const row = (name: string): Promise<HTMLElement> => screen.findByRole('link', { name }).then((link) => link.closest<HTMLElement>('[role=row]')!)

const WORDS = {
  en: {
    loading: 'Loading the list…',
    empty: /Notebooks and jobs keep their files in volumes: create one first/,
    refused: 'You have no right to do so: persistentvolumeclaims is forbidden: User "jane" cannot list resource "persistentvolumeclaims" in API group "" in the namespace "default"',
    silent: 'the server does not answer',
    lost: /The connection to the server is lost/,
    noMatch: 'Nothing matches',
    search: 'Type a name to search',
  },
  zh: {
    loading: '正在载入 列表…',
    empty: /Notebook 和作业的文件保存在持久卷里，先创建一个/,
    refused: '您没有权限：用户 jane 在项目 default 中没有权限对 persistentvolumeclaims 执行 list',
    silent: '服务器没有回应，请检查网络后重试',
    lost: /与服务器的连接已断开/,
    noMatch: '没有符合条件的条目',
    search: '键入名称以搜索',
  },
} as const

describe.each(LANGUAGES)('a list (%s)', (language) => {
  const words = WORDS[language]

  it('says that it is being loaded, not that it is empty', async () => {
    server.on('GET', /persistentvolumeclaims$/, neverAnswers)
    open('/build/default/volumes', language)
    expect(await screen.findByText(words.loading)).toBeTruthy()
    expect(screen.queryByText(words.empty)).toBeNull()
  })

  it('says what to do while it is empty', async () => {
    open('/build/default/volumes', language)
    expect(await screen.findByText(words.empty)).toBeTruthy()
  })

  it('says that the person may not see it', async () => {
    server.forbid('persistentvolumeclaims')
    open('/build/default/volumes', language)
    expect(await screen.findByText(words.refused)).toBeTruthy()
  })

  it('says that the server does not answer', async () => {
    server.on('GET', /persistentvolumeclaims$/, () => Promise.reject(new TypeError('fetch failed')))
    open('/build/default/volumes', language)
    expect(await screen.findByText(words.silent)).toBeTruthy()
  })

  it('keeps its rows while the server is away, says so, and catches up', async () => {
    server.put(claim('first'))
    open('/build/default/volumes', language)
    await row('first')
    vi.useFakeTimers()
    server.leave()
    await pass(1_000)
    expect(screen.getByText(words.lost)).toBeTruthy()
    expect(names()).toEqual(['first'])
    server.comeBack()
    await pass(30_000)
    expect(screen.queryByText(words.lost)).toBeNull()
    server.put(claim('second'))
    await pass(100)
    expect(names()).toContain('second')
  })

  it('finds by name, and says when nothing matches', async () => {
    server.put(claim('apples'), claim('pears'))
    const user = open('/build/default/volumes', language)
    await row('pears')
    await user.type(screen.getByRole('searchbox', { name: words.search }), 'app')
    expect(names()).toEqual(['apples'])
    await user.type(screen.getByRole('searchbox', { name: words.search }), 'x')
    expect(screen.getByText(words.noMatch)).toBeTruthy()
  })
})

describe('rows', () => {
  it('come, change and go without being asked for', async () => {
    server.put(configMap('one'))
    open('/build/default/configmaps')
    await row('one')
    server.put(configMap('two'))
    await row('two')
    server.remove(configMap('one'))
    await waitFor(() => expect(names()).toEqual(['two']))
  })

  it.each([
    ['en', 'Container main of pod broken ended with exit code 3'],
    ['zh', 'broken 的容器 main 以退出码 3 结束'],
  ] as const)('say in which state they are and why (%s)', async (language, whole) => {
    const causes: Record<string, unknown[]> = { broken: [{ code: 'DL-EXIT', params: { pod: 'broken', container: 'main', exit_code: 3 } }] }
    server.on('POST', /explain$/, ({ body }) => ({ each: (body as { objects: KubeObject[] }).objects.map(({ metadata }) => causes[metadata.name] ?? []) }))
    const message = '0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.'
    server.put(pod('fine'), pod('broken', ended(3)), pod('waiting', unscheduled(message)))
    open('/build/default/pods', language)
    expect(within(await row('fine')).getByText('Running')).toBeTruthy()
    expect(within(await row('broken')).getByText('Failed')).toBeTruthy()
    expect(within(await row('waiting')).getByText('Pending')).toBeTruthy()
    const why = await within(await row('broken')).findByText(whole)
    expect(why.getAttribute('tabindex')).toBe('0') // a keyboard reaches what the pointer would show
    fireEvent.focus(why)
    expect((await screen.findByRole('tooltip')).textContent).toBe(whole)
  })

  it.each([
    ['en', 'Container pytorch of pod j-0 ran out of memory'],
    ['zh', 'j-0 的容器 pytorch 内存用尽，被系统终止（上限 220Mi）'],
  ] as const)('of jobs say the cause their controller found (%s)', async (language, cause) => {
    const causes = [{ code: 'DL-OOM', params: { pod: 'j-0', container: 'pytorch', limit: '220Mi' } }]
    server.put(job('greedy', { type: 'Failed', status: 'True', reason: 'PyTorchJobFailed', message: 'x', causes }), job('fine', { type: 'Running', status: 'True' }))
    open('/build/default/jobs', language)
    expect((await row('greedy')).textContent).toContain(cause)
    expect((await row('fine')).textContent).toContain('Running')
  })

  it('of the kinds that may be seen are shown, and it is said which may not', async () => {
    server.put(job('seen', { type: 'Running', status: 'True' }))
    server.forbid('tfjobs')
    open('/build/default/jobs')
    await row('seen')
    expect(await screen.findByText(/^You have no right to do so: tfjobs is forbidden/)).toBeTruthy()
  })

  it('whose sight is taken away while they are looked at are said to be old', async () => {
    server.put(configMap('secretive'))
    const user = open('/build/default/configmaps')
    await row('secretive')
    server.forbid('configmaps')
    await user.click(screen.getByRole('button', { name: 'Refresh' }))
    expect(await screen.findByText(/^You have no right to do so: configmaps is forbidden/)).toBeTruthy()
  })
})

describe('deleting', () => {
  it.each([
    ['en', 'Delete PersistentVolumeClaim data?', 'All files in it are deleted with it and cannot be brought back.', 'Delete', 'data is deleted'],
    ['zh', '删除 持久卷 data？', '其中的所有文件会一起被删除，无法恢复。', '删除', '已删除 data'],
  ] as const)('says what goes with it, and offers Cancel first (%s)', async (language, question, goes, button, done) => {
    server.put(claim('data'))
    const user = open('/build/default/volumes', language)
    await user.click(within(await row('data')).getByRole('button', { name: /: data$/ }))
    await user.click(await screen.findByRole('menuitem', { name: button }))
    const dialog = await screen.findByRole('dialog')
    expect(within(dialog).getAllByText(question)).toBeTruthy()
    expect(within(dialog).getByText(goes)).toBeTruthy()
    await waitFor(() => expect(document.activeElement?.textContent).toBe(language === 'en' ? 'Cancel' : '取消'))
    expect(server.written('DELETE', 'persistentvolumeclaims')).toEqual([])
    await user.click(within(dialog).getByRole('button', { name: button }))
    expect(await screen.findByText(done)).toBeTruthy()
    // With its uid: a namesake made in between stays.
    expect(server.written('DELETE', 'persistentvolumeclaims')).toMatchObject([{ preconditions: { uid: 'uid-data' } }])
  })

  it('is not offered while somebody uses it', async () => {
    server.put(claim('busy'), pod('user', undefined, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'busy' } }] }))
    const user = open('/build/default/volumes')
    await user.click(within(await row('busy')).getByRole('button', { name: 'More: busy' }))
    await user.click(await screen.findByRole('menuitem', { name: 'Delete' }))
    const dialog = await screen.findByRole('dialog')
    expect(within(dialog).getByText('It is used by user and cannot be deleted. Delete or pause them first.')).toBeTruthy()
    expect(within(dialog).queryByRole('button', { name: 'Delete' })).toBeNull()
  })

  it('of several says which of them it could not', async () => {
    server.put(configMap('a'), configMap('b'))
    server.on('DELETE', /configmaps\/b$/, () => Response.json({ kind: 'Status', code: 403, message: 'configmaps "b" is forbidden: User "jane" cannot delete resource "configmaps" in API group "" in the namespace "default"' }, { status: 403 }))
    const user = open('/build/default/configmaps', 'zh')
    await user.click(within(await row('a')).getByRole('checkbox', { name: '选择 a' }))
    await user.click(within(await row('b')).getByRole('checkbox', { name: '选择 b' }))
    await user.click(screen.getByRole('button', { name: '删除' }))
    await user.click(within(await screen.findByRole('dialog')).getByRole('button', { name: '删除' }))
    expect(await screen.findByText('b 未能删除：用户 jane 在项目 default 中没有权限对 configmaps 执行 delete')).toBeTruthy()
    await waitFor(() => expect(names()).toEqual(['b']))
  })
})
