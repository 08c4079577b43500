/** Secrets: values stay hidden, templates ask for what they need, and whoever deletes one hears who refers to it. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../kube'
import { pod } from '../../testing/objects'
import { open, server } from '../../testing/page'
import { refusal } from '../../testing/server'

const HIDDEN = 'nobody sees this'
const secret = (name: string, more: object = {}): KubeObject => ({ apiVersion: 'v1', kind: 'Secret', type: 'Opaque', metadata: { name }, data: { token: btoa(HIDDEN), raw: btoa('\u0000\u0001') }, ...more }) as KubeObject
const row = (name: string): Promise<HTMLElement> => screen.findByRole('link', { name }).then((link) => link.closest<HTMLElement>('[role=row]')!)
const page = (): string => document.body.textContent ?? ''

it('the list has types and keys, and no values', async () => {
  server.put(secret('keys'))
  open('/build/default/secrets')
  const text = (await row('keys')).textContent
  expect(text).toContain('Opaque')
  expect(text).toContain('token, raw')
  expect(page()).not.toContain(HIDDEN)
})

describe('the page', () => {
  it.each([
    ['en', 'Show', 'Hide', 'Binary; download it to look inside'],
    ['zh', '显示', '隐藏', '二进制内容，请下载查看'],
  ] as const)('shows each value when it is asked for, and hides it again (%s)', async (language, show, hide, binary) => {
    server.put(secret('keys'))
    const user = open('/build/default/secrets/keys', language)
    const part = (key: string): HTMLElement => screen.getByRole('heading', { level: 3, name: key }).closest('section')!
    await screen.findByRole('heading', { level: 3, name: 'token' })
    expect(page()).not.toContain(HIDDEN)
    await user.click(within(part('token')).getByRole('button', { name: new RegExp(show) }))
    expect(within(part('token')).getByText(HIDDEN)).toBeTruthy()
    await user.click(within(part('token')).getByRole('button', { name: new RegExp(hide) }))
    expect(page()).not.toContain(HIDDEN)
    await user.click(within(part('raw')).getByRole('button', { name: new RegExp(show) }))
    expect(within(part('raw')).getByText(binary)).toBeTruthy()
  })

  it('says who refers to it, also where that goes with it', async () => {
    server.put(secret('keys'), pod('reader', undefined, { volumes: [{ name: 'v', secret: { secretName: 'keys' } }] }))
    const user = open('/build/default/secrets/keys')
    expect(await screen.findByRole('link', { name: 'reader' })).toBeTruthy()
    await user.click(screen.getByRole('button', { name: 'Delete' }))
    expect(within(await screen.findByRole('dialog')).getByText('It is used by reader; they will fail when they start again.')).toBeTruthy()
  })
})

describe('making one', () => {
  it.each([
    ['en', 'Name', 'Create', 'Registry', 'User name', 'Password', 'Name is needed', 'Registry is needed'],
    ['zh', '名称', '创建', '仓库地址', '用户名', '密码', '请填写“名称”', '请填写“仓库地址”'],
  ] as const)('for a registry asks for what that needs (%s)', async (language, name, create, registry, userName, password, nameNeeded, registryNeeded) => {
    const user = open('/build/default/secrets/new', language)
    await user.click(await screen.findByRole('radio', { name: 'Docker' }))
    await user.click(screen.getByRole('button', { name: create }))
    expect(await screen.findByText(nameNeeded)).toBeTruthy()
    expect(screen.getByText(registryNeeded)).toBeTruthy()
    expect(server.written('POST', 'secrets')).toEqual([])
    await user.type(screen.getByLabelText(name), 'registry')
    await user.type(screen.getByLabelText(registry), 'example.com')
    await user.type(screen.getByLabelText(userName), 'jane')
    await user.type(screen.getByLabelText(password), 'pw')
    expect(screen.getByLabelText(password).getAttribute('type')).toBe('password')
    await user.click(screen.getByRole('button', { name: create }))
    await waitFor(() => expect(server.written('POST', 'secrets')).toHaveLength(1))
    const made = server.written('POST', 'secrets')[0] as { type: string; metadata: object; stringData: Record<string, string> }
    expect(made).toMatchObject({ type: 'kubernetes.io/dockerconfigjson', metadata: { name: 'registry', labels: { 'tensorstack.dev/resource': 'docker' } } })
    expect(JSON.parse(made.stringData['.dockerconfigjson']!)).toEqual({ auths: { 'example.com': { username: 'jane', password: 'pw', auth: btoa('jane:pw') } } })
    expect(await row('registry')).toBeTruthy()
  })

  it('with keys of its own refuses what can be none, before the server does', async () => {
    const user = open('/build/default/secrets/new')
    await user.type(await screen.findByLabelText('Name'), 'own')
    await user.click(screen.getByRole('radio', { name: 'Custom' }))
    await user.type(screen.getByLabelText('Key 1'), 'a key')
    await user.click(screen.getByRole('button', { name: 'Create' }))
    expect(await screen.findByText('A key has letters, digits, "-", "_" and "." only')).toBeTruthy()
    expect(server.written('POST', 'secrets')).toEqual([])
    await user.clear(screen.getByLabelText('Key 1'))
    await user.type(screen.getByLabelText('Key 1'), 'a.key')
    await user.type(screen.getByLabelText('Value 1'), 'v')
    await user.click(screen.getByRole('button', { name: 'Create' }))
    await waitFor(() => expect(server.written('POST', 'secrets')).toMatchObject([{ type: 'Opaque', stringData: { 'a.key': 'v' } }]))
  })

  it('stays where it is when the server refuses, and says why', async () => {
    server.on('POST', /secrets$/, () => refusal(403, 'secrets is forbidden: User "jane" cannot create resource "secrets" in API group "" in the namespace "default"', { reason: 'Forbidden' }))
    const user = open('/build/default/secrets/new', 'zh')
    await user.type(await screen.findByLabelText('名称'), 'own')
    await user.type(screen.getByLabelText('键 1'), 'k')
    await user.click(screen.getByRole('button', { name: '创建' }))
    expect(await screen.findByText('没有权限：用户 jane 在项目 default 中没有权限对 secrets 执行 create')).toBeTruthy()
    expect((screen.getByLabelText('名称') as HTMLInputElement).value).toBe('own')
  })
})
