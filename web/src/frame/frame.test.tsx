/** Around the pages: signing in and being signed out, menu, project, search, language, and what has focus. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it, vi } from 'vitest'
import { claim, configMap, namespace, pod, project } from '../testing/objects'
import { LANGUAGES, open, ownTime, pass, server } from '../testing/page'
import { refusal, SESSION, neverAnswers } from '../testing/server'

const signedOut = (): void => server.on('GET', /^\/console\/session$/, () => Response.json({ signIn: ['token'] }, { status: 401 }))
const signedIn = (): void => server.on('GET', /^\/console\/session$/, () => SESSION)

const WORDS = {
  en: {
    connecting: 'Connecting to the server…',
    silent: 'The server does not answer. Look at the network, and whether Danlu runs.',
    retry: 'Try again',
    token: 'Token',
    signIn: 'Sign in',
    missing: 'A token is needed',
    wrong: 'The token is wrong or has expired.',
    expired: 'Your sign-in has expired. Sign in again and you are back on the same page.',
    account: 'Account',
    signOut: 'Sign out',
    menu: 'Menu',
    entries: ['Overview', 'Volumes', 'Notebooks', 'Jobs', 'TensorBoards', 'Pods', 'Secrets', 'ConfigMaps', 'Nodes', 'Queues', 'Projects'],
    switch: 'Switch project: default',
    find: 'Find a project',
    none: 'You may not list projects. Type the name of a namespace.',
    type: 'Namespace',
    search: 'Search',
    nothing: 'Nothing found',
    notFound: 'There is no such page',
    broken: 'This page has failed',
    language: 'Language: English',
    title: 'ConfigMaps · Danlu',
  },
  zh: {
    connecting: '正在连接服务器…',
    silent: '服务器没有响应。请检查网络，以及丹炉是否在运行。',
    retry: '重试',
    token: '令牌',
    signIn: '登录',
    missing: '请输入令牌',
    wrong: '令牌不正确或已过期。',
    expired: '登录已过期，请重新登录；之后会回到刚才的页面。',
    account: '账户',
    signOut: '退出登录',
    menu: '菜单',
    entries: ['总览', '持久卷', 'Notebook', 'Job', 'TensorBoard', 'Pod', 'Secret', 'ConfigMap', '节点', '队列', '项目'],
    switch: '切换项目: default',
    find: '查找项目',
    none: '您看不到任何项目。请输入命名空间的名称。',
    type: '命名空间',
    search: '搜索',
    nothing: '没有找到',
    notFound: '没有这个页面',
    broken: '页面出错了',
    language: '语言: 中文',
    title: 'ConfigMap · Danlu',
  },
} as const

describe.each(LANGUAGES)('signing in (%s)', (language) => {
  const words = WORDS[language]

  it('is asked for after a word of waiting', async () => {
    server.on('GET', /^\/console\/session$/, neverAnswers)
    open('/build/default/configmaps', language)
    expect(await screen.findByRole('status', { name: words.connecting })).toBeTruthy()
  })

  it('that cannot be asked for is said, and tried again', async () => {
    server.put(configMap('box'))
    server.leave()
    const user = open('/build/default/configmaps', language)
    expect(await screen.findByText(words.silent)).toBeTruthy()
    server.comeBack()
    await user.click(screen.getByRole('button', { name: words.retry }))
    expect(await screen.findByRole('link', { name: 'box' })).toBeTruthy()
  })

  it('leads to the page that was asked for; a wrong token does not', async () => {
    server.put(configMap('box'))
    signedOut()
    server.on('POST', /^\/console\/sign-in$/, ({ body }) => {
      if ((body as { token: string }).token !== 'right') return refusal(401, 'no')
      signedIn()
      return SESSION
    })
    const user = open('/build/default/configmaps', language)
    const token = await screen.findByLabelText(words.token)
    expect(screen.queryByText(words.expired)).toBeNull()
    await user.click(screen.getByRole('button', { name: words.signIn }))
    expect(await screen.findByText(words.missing)).toBeTruthy()
    await user.type(token, 'wrong{Enter}')
    expect(await screen.findByText(words.wrong)).toBeTruthy()
    await user.clear(token)
    await user.type(token, 'right{Enter}')
    expect(await screen.findByRole('link', { name: 'box' })).toBeTruthy()
  })

  it('that has expired is asked for in place of the page, which comes back', async () => {
    server.put(configMap('box'))
    const user = open('/build/default/configmaps', language)
    await screen.findByRole('link', { name: 'box' })
    signedOut()
    server.on('GET', /configmaps$/, () => refusal(401, 'Unauthorized'))
    await user.click(screen.getByRole('button', { name: language === 'en' ? 'Refresh' : '刷新' }))
    expect(await screen.findByText(words.expired)).toBeTruthy()
    expect(screen.queryByRole('link', { name: 'box' })).toBeNull() // what was seen is not left on the screen
    server.on('POST', /^\/console\/sign-in$/, () => SESSION)
    signedIn()
    server.on('GET', /configmaps$/, () => ({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: 'box', namespace: 'default' } }] }))
    await user.type(screen.getByLabelText(words.token), 'right{Enter}')
    expect(await screen.findByRole('link', { name: 'box' })).toBeTruthy()
    expect(location.pathname).toBe('/build/default/configmaps')
  })

  it('renewed at once leaves lists alive, also when what was kept of the one before is let go', async () => {
    ownTime()
    server.put(configMap('box'))
    const user = open('/build/default/configmaps', language)
    await screen.findByRole('link', { name: 'box' })
    window.dispatchEvent(new StorageEvent('storage', { key: 'danlu.proof' })) // signed in anew in another tab
    await screen.findByRole('link', { name: 'box' })
    await pass(25_000)
    await user.click(screen.getByRole('button', { name: words.switch })) // whatever makes the page draw itself
    server.put(configMap('later'))
    expect(await screen.findByRole('link', { name: 'later' })).toBeTruthy()
    expect(screen.getByRole('link', { name: 'box' })).toBeTruthy()
  })

  it('ends when the person says so', async () => {
    const user = open('/build/default/configmaps', language)
    await user.click(await screen.findByRole('button', { name: words.account }))
    server.on('POST', /^\/console\/sign-out$/, () => {
      signedOut()
      return {}
    })
    await user.click(await screen.findByRole('menuitem', { name: words.signOut }))
    expect(await screen.findByLabelText(words.token)).toBeTruthy()
    expect(screen.queryByText(words.expired)).toBeNull()
  })

  it('of another tab counts here: nobody goes on as who they were', async () => {
    open('/build/default/configmaps', language)
    await screen.findByRole('button', { name: words.account })
    signedOut()
    window.dispatchEvent(new StorageEvent('storage', { key: 'danlu.proof' }))
    expect(await screen.findByLabelText(words.token)).toBeTruthy()
  })
})

describe.each(LANGUAGES)('the frame (%s)', (language) => {
  const words = WORDS[language]

  it('has a menu of all pages', async () => {
    open('/build/default/configmaps', language)
    const menu = await screen.findByRole('navigation', { name: words.menu })
    expect(within(menu).getAllByRole('link').map((link) => link.textContent)).toEqual(words.entries)
    await waitFor(() => expect(document.title).toBe(words.title))
  })

  it('switches the project and stays on the page; projects stand first', async () => {
    server.put(namespace('default'), namespace('kube-system'), namespace('zebra'), namespace('team'), project('team'))
    server.put(configMap('theirs', { namespace: 'team' }))
    const user = open('/build/default/configmaps', language)
    const button = await screen.findByRole('button', { name: words.switch })
    await user.click(button)
    await screen.findByRole('button', { name: /^team/ })
    const names = within(screen.getByRole('group')).getAllByRole('listitem').map((item) => within(item).getByRole('button').querySelector('.grow')!.textContent)
    expect(names).toEqual(['team', 'default', 'zebra'])
    await user.type(screen.getByRole('textbox', { name: words.find }), 'te')
    await user.keyboard('{Enter}')
    expect(await screen.findByRole('link', { name: 'theirs' })).toBeTruthy()
    expect(location.pathname).toBe('/build/team/configmaps')
    expect(localStorage.getItem('danlu.project')).toBe('team')
  })

  it('lets those who may list no projects type a name', async () => {
    server.forbid('projects')
    server.forbid('namespaces')
    const user = open('/build/default/configmaps', language)
    await user.click(await screen.findByRole('button', { name: words.switch }))
    expect(await screen.findByText(words.none)).toBeTruthy()
    await user.type(screen.getByRole('searchbox', { name: words.type }), 'team{Enter}')
    await waitFor(() => expect(location.pathname).toBe('/build/team/configmaps'))
  })

  it('finds pages and objects by name, without a mouse', async () => {
    server.put(claim('data'), pod('data-reader'))
    const user = open('/build/default/configmaps', language)
    await screen.findByRole('navigation', { name: words.menu })
    await user.keyboard('{Control>}k{/Control}')
    const input = await screen.findByRole('combobox', { name: words.search })
    await user.type(input, 'data')
    await waitFor(() => expect(screen.getAllByRole('option')).toHaveLength(2))
    expect(screen.getByRole('option', { selected: true }).textContent).toContain('data')
    await user.keyboard('{ArrowDown}')
    const chosen = screen.getByRole('option', { selected: true })
    expect(input.getAttribute('aria-activedescendant')).toBe(chosen.id)
    await user.type(input, '-')
    await waitFor(() => expect(screen.getAllByRole('option')).toHaveLength(1))
    await user.keyboard('{Enter}')
    expect(await screen.findByRole('heading', { level: 1, name: 'data-reader' })).toBeTruthy()
    expect(location.pathname).toBe('/build/default/pods/data-reader')
  })

  it('says when nothing is found', async () => {
    const user = open('/build/default/configmaps', language)
    await screen.findByRole('navigation', { name: words.menu })
    await user.keyboard('{Control>}k{/Control}')
    await user.type(await screen.findByRole('combobox', { name: words.search }), 'xyzzy')
    expect(await screen.findByText(words.nothing)).toBeTruthy()
  })

  it('says that there is no such page', async () => {
    open('/build/default/no-such-page', language)
    expect(await screen.findByRole('heading', { level: 1, name: words.notFound })).toBeTruthy()
    expect(screen.getByRole('navigation', { name: words.menu })).toBeTruthy()
  })

  it('stays usable around a page that fails', async () => {
    const quiet = vi.spyOn(console, 'error').mockReturnValue()
    server.on('GET', /configmaps$/, () => ({ metadata: { resourceVersion: '1' }, items: [{ metadata: { name: { not: 'a name' }, namespace: 'default' } }] }))
    const user = open('/build/default/configmaps', language)
    expect(await screen.findByText(words.broken)).toBeTruthy()
    await user.click(within(screen.getByRole('navigation', { name: words.menu })).getByRole('link', { name: words.entries[1] }))
    await waitFor(() => expect(screen.queryByText(words.broken)).toBeNull())
    quiet.mockRestore()
  })
})

describe('the language', () => {
  it('changes everything at once, and is remembered', async () => {
    server.put(configMap('box'))
    const user = open('/build/default/configmaps', 'zh')
    await user.click(await screen.findByRole('button', { name: WORDS.zh.language }))
    await user.click(await screen.findByRole('menuitem', { name: 'English' }))
    expect(await screen.findByRole('button', { name: WORDS.en.language })).toBeTruthy()
    expect(document.documentElement.lang).toBe('en')
    expect(localStorage.getItem('danlu.language')).toBe('en')
    expect(screen.getByRole('columnheader', { name: 'Created' })).toBeTruthy()
    expect(document.getElementById('root')!.textContent).not.toMatch(/[\u4e00-\u9fff]/)
  })
})

describe('focus', () => {
  it('goes back to the menu button from the dialog it opened', async () => {
    server.put(configMap('box'))
    const user = open('/build/default/configmaps')
    const more = await screen.findByRole('button', { name: 'More: box' })
    more.focus()
    await user.keyboard('{Enter}')
    await user.click(await screen.findByRole('menuitem', { name: 'YAML' }))
    const dialog = await screen.findByRole('dialog')
    await user.click(within(dialog).getByRole('button', { name: 'Close' }))
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    await waitFor(() => expect(document.activeElement).toBe(more))
  })

  it('goes into a panel, and back with Escape', async () => {
    const user = open('/build/default/volumes')
    const columns = await screen.findByRole('button', { name: /Columns$/ })
    await user.click(columns)
    await waitFor(() => expect(document.activeElement?.getAttribute('type')).toBe('checkbox'))
    await user.keyboard('{Escape}')
    await waitFor(() => expect(document.activeElement).toBe(columns))
  })
})
