/** Pages that the kinds' folders describe: each of them opens in both languages, and shows states, amounts and actions. */
import { act, screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { kindNamed } from '../kube/kinds'
import { job, namespace, notebook, pod } from '../testing/objects'
import { LANGUAGES, open, ownTime, pass, server } from '../testing/page'
import { refusal } from '../testing/server'
import { DESCRIPTIONS, KIND_PAGES, type Tone } from './description'
import { toneOf } from '../ui/state'

const WRONG = /\[object Object\]|undefined|NaN|TypeError/
const COLOURS: Record<Tone, string> = { good: 'success', busy: 'processing', waiting: 'warning', bad: 'error', quiet: 'default' }
const content = (): HTMLElement => document.getElementById('content')!
const row = (name: string): Promise<HTMLElement> => screen.findByRole('link', { name }).then((link) => link.closest<HTMLElement>('[role=row]')!)

/** Whether a tag has the colour of a tone: the library says it with a class. */
function hasTone(tag: HTMLElement, tone: Tone): boolean {
  const classes = tag.closest('.ant-tag')!.className
  return tone === 'quiet' ? !/ant-tag-(success|processing|warning|error)/.test(classes) : classes.includes(`ant-tag-${COLOURS[tone]}`)
}

describe.each(LANGUAGES)('described pages (%s)', (language) => {
  it.each(KIND_PAGES.map((page) => [page.key, page] as const))('%s: the list', async (key, page) => {
    open(`/build/default/${key}`, language)
    expect(await screen.findByRole('heading', { level: 1, name: page.title[language] })).toBeTruthy()
    expect(await screen.findByRole('button', { name: new RegExp(`^${(page.create ?? { zh: '创建', en: 'Create' })[language]}`) })).toBeTruthy()
    await screen.findByText((page.empty ?? { zh: '没有可展示的条目', en: 'Nothing to show' })[language])
    expect(content().textContent).not.toMatch(WRONG)
  })
})

it.each(KIND_PAGES.flatMap((page) => page.kinds.map((each) => [each.kind, `${page.key}/new${page.several ? `/${each.plural}` : ''}`] as const)))('the form of %s', async (_, address) => {
  open(`/build/default/${address}`, 'zh')
  expect(await screen.findByRole('heading', { level: 1 })).toBeTruthy()
  expect(await screen.findByLabelText('名称')).toBeTruthy()
  expect(content().textContent).not.toMatch(WRONG)
})

describe('states', () => {
  const phases = DESCRIPTIONS.filter((each) => typeof each.page === 'object' && each.states && !each.conditions)

  it.each(phases.map((each) => [each.kind, each] as const))('of %s have the colours that its folder says', async (_, said) => {
    const states = Object.entries(said.states!)
    for (const [phase] of states) server.put({ apiVersion: said.apiVersion, kind: said.kind, metadata: { name: `x-${phase.toLowerCase()}` }, spec: {}, status: { phase } })
    open(`/build/default/${kindNamed(said.kind)!.plural}`)
    for (const [phase, spec] of states) {
      const { tone, word = phase } = typeof spec === 'string' ? { tone: spec } : spec
      expect(hasTone(within(await row(`x-${phase.toLowerCase()}`)).getByText(word), tone), phase).toBe(true)
    }
  })

  it('of jobs with conditions: the strongest counts, in the words of the documents', async () => {
    const both = [{ type: 'Running', status: 'True' }, { type: 'Failed', status: 'True', reason: 'PyTorchJobFailed', message: 'x' }]
    server.put(job('lost', ...both), job('won', { type: 'Running', status: 'False' }, { type: 'Succeeded', status: 'True' }))
    open('/build/default/jobs')
    expect(hasTone(within(await row('lost')).getByText('Error'), 'bad')).toBe(true)
    expect(hasTone(within(await row('won')).getByText('Done'), 'good')).toBe(true)
  })

  it('of what is being deleted are quiet, whatever else they are', async () => {
    server.put({ ...notebook('going', 'Running'), metadata: { name: 'going', deletionTimestamp: '2026-01-02T03:04:05Z' } })
    open('/build/default/notebooks')
    expect(hasTone(within(await row('going')).getByText('Terminating'), 'quiet')).toBe(true)
  })

  it('that nobody has described are bad when they sound so', () => {
    expect(toneOf('ErrImageNeverPull')).toBe('bad')
    expect(toneOf('Whatever')).toBe('quiet')
  })
})

describe('amounts and times', () => {
  it('are shown as the documents do', async () => {
    server.put(notebook('nb', 'Running'), job('train', { type: 'Running', status: 'True' }))
    open('/build/default/notebooks')
    const cells = within(await row('nb')).getAllByRole('cell').map((cell) => cell.textContent)
    expect(cells).toContain('0.50 / 2.00')
    expect(cells).toContain('512.00Mi / 1.00Gi')
  })

  it('of a job are those of all its replicas', async () => {
    server.put(job('train', { type: 'Running', status: 'True' }))
    open('/build/default/jobs')
    const text = (await row('train')).textContent
    expect(text).toContain('4.00')
    expect(text).toContain('8.00Gi')
    expect(within(await row('train')).getByTitle('nvidia.com/gpu: 2')).toBeTruthy()
  })

  it.each([
    ['en', '5 min ago', '6 min ago'],
    ['zh', '5 分钟前', '6 分钟前'],
  ] as const)('grow while one looks (%s)', async (language, before, after) => {
    ownTime()
    server.put(notebook('nb', 'Running'))
    open('/build/default/notebooks', language)
    expect(within(await row('nb')).getByText(before)).toBeTruthy()
    await pass(60_000)
    expect(within(await row('nb')).getByText(after)).toBeTruthy()
  })
})

describe('actions', () => {
  const ready = [{ type: 'Ready', status: 'True' }]

  it.each([
    ['en', 'Open', 'Pause', 'Resume'],
    ['zh', '打开', '暂停', '恢复'],
  ] as const)('of a notebook: opened when it answers, paused and resumed with one button (%s)', async (language, openIt, pause, resume) => {
    server.put(notebook('slow', 'Pending'), notebook('nb', 'Running', {}, ready))
    const user = open('/build/default/notebooks', language)
    expect(within(await row('slow')).getByRole('button', { name: `${openIt} slow` }).hasAttribute('disabled')).toBe(true)
    expect(within(await row('nb')).getByRole('button', { name: `${openIt} nb` }).hasAttribute('disabled')).toBe(false)
    await user.click(within(await row('nb')).getByRole('button', { name: `${pause} nb` }))
    await waitFor(() => expect(server.written('PATCH', 'notebooks')).toEqual([{ spec: { suspend: true } }]))
    await user.click(await within(await row('nb')).findByRole('button', { name: new RegExp(`${resume} nb$`) }))
    await waitFor(() => expect(server.written('PATCH', 'notebooks')).toEqual([{ spec: { suspend: true } }, { spec: { suspend: false } }]))
  })

  it('of what is paused in an older spelling take that away', async () => {
    server.put(notebook('old', 'Suspended', { runMode: 'paused' }))
    const user = open('/build/default/notebooks')
    expect(within(await row('old')).queryByRole('button', { name: 'Open old' })).toBeNull()
    await user.click(within(await row('old')).getByRole('button', { name: 'Resume old' }))
    await waitFor(() => expect(server.written('PATCH', 'notebooks')).toEqual([{ spec: { suspend: false, runMode: null } }]))
  })

  it('that the server refuses are told, in the language of the page', async () => {
    server.put(notebook('nb', 'Running', {}, ready))
    server.on('PATCH', /notebooks\/nb$/, () => refusal(403, 'notebooks.tensorstack.dev "nb" is forbidden: User "jane" cannot patch resource "notebooks" in API group "tensorstack.dev" in the namespace "default"'))
    const user = open('/build/default/notebooks', 'zh')
    await user.click(within(await row('nb')).getByRole('button', { name: '暂停 nb' }))
    expect(await screen.findByText('没有成功：用户 jane 在项目 default 中没有权限对 notebooks 执行 patch')).toBeTruthy()
  })

  it('of a job ask before they end something', async () => {
    server.put(job('train', { type: 'Running', status: 'True' }))
    const user = open('/build/default/jobs')
    await user.click(within(await row('train')).getByRole('button', { name: 'More: train' }))
    await user.click(await screen.findByRole('menuitem', { name: 'Pause' }))
    const dialog = await screen.findByRole('dialog')
    expect(dialog.textContent).toContain('progress that is not on a volume and their logs are lost')
    expect(server.written('PATCH', 'pytorchjobs')).toEqual([])
    await user.click(within(dialog).getByRole('button', { name: 'Pause' }))
    await waitFor(() => expect(server.written('PATCH', 'pytorchjobs')).toEqual([{ spec: { runPolicy: { suspend: true } } }]))
    expect(await screen.findByText('train is being paused')).toBeTruthy()
  })

  it('of a job that has ended do not pause it', async () => {
    server.put(job('done', { type: 'Succeeded', status: 'True' }))
    const user = open('/build/default/jobs')
    await user.click(within(await row('done')).getByRole('button', { name: 'More: done' }))
    expect(await screen.findByRole('menuitem', { name: 'Clone' })).toBeTruthy()
    expect(screen.queryByRole('menuitem', { name: 'Pause' })).toBeNull()
  })
})

describe('the page of a notebook', () => {
  it('finds its pod, and says where none runs', async () => {
    server.put(namespace('default'), { ...notebook('nb', 'Running'), status: { phase: 'Running', pod: { reference: { name: 'nb-0' } } } }, pod('nb-0'))
    const user = open('/build/default/notebooks/nb')
    expect(await screen.findByRole('link', { name: 'nb-0' })).toBeTruthy()
    act(() => server.put({ ...notebook('nb', 'Suspended', { suspend: true }), status: { phase: 'Suspended' } }))
    await user.click(screen.getByRole('tab', { name: 'Logs' }))
    expect(await screen.findByText('No pod runs: the notebook is paused or has not started.')).toBeTruthy()
  })
})
