/** What a log says of itself: that its container has not started and why, that it ended, that it starts again. */
import { screen, waitFor } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { ended, pod, running, unscheduled } from '../../testing/objects'
import { LANGUAGES, open, ownTime, pass, server } from '../../testing/page'
import { refusal } from '../../testing/server'

const ADDRESS = '/build/default/pods/talker?tab=logs'
const LOG = /pods\/talker\/log$/

/** A log that goes on until its end is told. */
function following(...first: string[]): { write: (text: string) => void; end: () => void } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const encoded = (text: string): Uint8Array => new TextEncoder().encode(text)
  server.on('GET', LOG, ({ query }) => {
    if (!query.get('follow')) return new Response(first.join('')) // its end, while the whole is on its way
    return new Response(new ReadableStream({ start: (made) => { controller = made; if (first.length) made.enqueue(encoded(first.join(''))) } }))
  })
  return { write: (text) => controller!.enqueue(encoded(text)), end: () => controller!.close() }
}

const log = (): Promise<HTMLElement> => screen.findByRole('log')

const WORDS = {
  en: {
    live: '1 lines · Live',
    ended: '2 lines · Ended',
    empty: 'The log is empty',
    waits: /^main: the container has not started \(0\/1 nodes are available: 1 Insufficient cpu/,
    starts: '0 lines · Waiting for the start',
    between: 'main: the container has ended and will be started again (Error, exit code 3)',
    forbidden: 'main: the log cannot be read (pods "talker" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default")',
    unread: '0 lines · Not readable',
    previous: 'Previous run',
  },
  zh: {
    live: '1 行 · 实时',
    ended: '2 行 · 已结束',
    empty: '日志为空',
    waits: /^main：容器尚未启动（.*节点.*）$/,
    starts: '0 行 · 等待启动',
    between: 'main：容器已退出，将再次启动（出错，退出码 3）',
    forbidden: 'main：无法读取日志（用户 jane 在项目 default 中没有权限对 pods/log 执行 get）',
    unread: '0 行 · 未能读取',
    previous: '上一次运行',
  },
} as const

describe.each(LANGUAGES)('a log (%s)', (language) => {
  const words = WORDS[language]

  it('is followed while its container runs', async () => {
    server.put(pod('talker'))
    const { write } = following('one\n')
    open(ADDRESS, language)
    expect(await screen.findByText(words.live)).toBeTruthy()
    write('two\n')
    await waitFor(async () => expect((await log()).textContent).toContain('two'))
  })

  it('ends with its container', async () => {
    server.put(pod('talker', ended(0)))
    server.on('GET', LOG, () => new Response('one\ntwo\n'))
    open(ADDRESS, language)
    expect(await screen.findByText(words.ended)).toBeTruthy()
    expect((await log()).textContent).toBe('1one2two')
  })

  it('that is empty and has ended says so', async () => {
    server.put(pod('talker', ended(0)))
    server.on('GET', LOG, () => new Response(''))
    open(ADDRESS, language)
    expect(await screen.findByText(words.empty)).toBeTruthy()
  })

  it('says why its container has not started, and is read from the start on', async () => {
    server.put(pod('talker', unscheduled('0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.')))
    server.on('GET', LOG, () => new Response(''))
    ownTime()
    open(ADDRESS, language)
    await log()
    await pass(2_500)
    expect(screen.getByText(words.waits)).toBeTruthy()
    expect(screen.getByText(words.starts)).toBeTruthy()
    server.put(pod('talker'))
    following('hello\n')
    await pass(4_500)
    expect((await log()).textContent).toBe('1hello')
    expect(screen.getByText(words.live)).toBeTruthy()
  })

  it('goes on below the last words of the run before', async () => {
    server.put(pod('talker', running(), { restartPolicy: 'Always' }))
    const first = following('first words\n')
    ownTime()
    open(ADDRESS, language)
    await screen.findByText(words.live)
    server.put(pod('talker', { phase: 'Running', containerStatuses: [{ name: 'main', restartCount: 0, state: { terminated: { exitCode: 3, reason: 'Error' } } }] }, { restartPolicy: 'Always' }))
    first.end()
    await pass(2_500)
    expect(screen.getByText(words.between)).toBeTruthy()
    following('second words\n')
    server.put(pod('talker', running(1), { restartPolicy: 'Always' }))
    await pass(4_500)
    expect((await log()).textContent).toBe('1first words2second words')
    expect(screen.queryByText(words.between)).toBeNull()
  })

  it('that the person may not read says so, and does not pretend to connect', async () => {
    server.put(pod('talker'))
    server.on('GET', LOG, () => refusal(403, 'pods "talker" is forbidden: User "jane" cannot get resource "pods/log" in API group "" in the namespace "default"', { reason: 'Forbidden' }))
    open(ADDRESS, language)
    expect(await screen.findByText(words.forbidden)).toBeTruthy()
    expect(screen.getByText(words.unread)).toBeTruthy()
  })

  it('of the run before is there for a container that was started again', async () => {
    server.put(pod('talker', running(1)))
    server.on('GET', LOG, ({ query }) => new Response(query.get('previous') ? 'what went wrong\n' : 'now\n'))
    const user = open(ADDRESS, language)
    await user.click(await screen.findByRole('checkbox', { name: words.previous }))
    await waitFor(async () => expect((await log()).textContent).toBe('1what went wrong'))
  })
})

describe('a log', () => {
  it('has no run before where there was none', async () => {
    server.put(pod('talker'))
    following('now\n')
    open(ADDRESS)
    await screen.findByText('1 lines · Live')
    expect(screen.queryByRole('checkbox', { name: 'Previous run' })).toBeNull()
  })

  it('is searched: how many lines match, and where', async () => {
    server.put(pod('talker', ended(0)))
    server.on('GET', LOG, () => new Response('loss 1\nstep\nLOSS 0.5\n'))
    const user = open(ADDRESS)
    await screen.findByText('3 lines · Ended')
    await user.type(screen.getByRole('textbox', { name: 'Search the log' }), 'loss')
    expect(await screen.findByText('1 / 2')).toBeTruthy()
    expect([...document.querySelectorAll('mark')].map((each) => each.textContent)).toEqual(['loss', 'LOSS'])
    await user.keyboard('{Enter}{Enter}')
    expect(await screen.findByText('2 / 2')).toBeTruthy()
    await user.keyboard('x')
    expect(await screen.findByText('No match')).toBeTruthy()
  })
})
