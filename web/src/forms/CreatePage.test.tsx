/** Forms: what is wrong stands beside its field, whoever found it; nothing that was written is lost. */
import { screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import { claim, configMap, job, pod } from '../testing/objects'
import { LANGUAGES, open, readYaml, server, writeYaml } from '../testing/page'
import { refusal } from '../testing/server'

const field = (label: string): Promise<HTMLElement> => screen.findByLabelText(label)

/** What a screen reader says after the field's name, and what stands below it. */
async function beside(label: string): Promise<string> {
  const id = (await field(label)).getAttribute('aria-describedby')
  return (id && document.getElementById(id)?.textContent) || ''
}

const WORDS = {
  en: {
    name: 'Name',
    size: 'Size',
    create: 'Create',
    needed: 'Name is needed',
    badName: 'Lower-case letters, digits and "-" only, with a letter or digit at both ends',
    notQuantity: 'A quantity is needed, such as 500m, 2 or 4Gi',
    taken: /Choose another name/,
    refused: 'The server refused',
    next: /Next step:/,
    done: 'PersistentVolumeClaim data is created',
  },
  zh: {
    name: '名称',
    size: '大小',
    create: '创建',
    needed: '请填写“名称”',
    badName: '只能使用小写字母、数字和“-”，以字母或数字开头和结尾',
    notQuantity: '应为数量，例如 500m、2、4Gi',
    taken: /已经有名为 data 的对象[^]*换一个名称/,
    refused: '服务器拒绝了请求',
    next: /下一步:/,
    done: '创建 PersistentVolumeClaim data 成功',
  },
} as const

describe.each(LANGUAGES)('a form (%s)', (language) => {
  const words = WORDS[language]
  const begin = async () => {
    const user = open('/build/default/volumes/new', language)
    const name = await field(words.name)
    return { user, name, create: () => user.click(screen.getByRole('button', { name: words.create })) }
  }

  it('begins in its first field, and calls nothing wrong that was not written yet', async () => {
    const { name } = await begin()
    await waitFor(() => expect(document.activeElement).toBe(name))
    expect(screen.queryByText(words.needed)).toBeNull()
  })

  it('says what is missing beside the field, and leads there', async () => {
    const { create, name } = await begin()
    await create()
    await waitFor(async () => expect(await beside(words.name)).toBe(words.needed))
    await waitFor(() => expect(document.activeElement).toBe(name))
    expect(server.written('POST', 'persistentvolumeclaims')).toEqual([])
  })

  it('says at once what can never be right', async () => {
    const { user, name } = await begin()
    await user.type(name, 'Wrong Name')
    expect(await beside(words.name)).toBe(words.badName)
    await user.clear(await field(words.size))
    await user.type(await field(words.size), 'much')
    expect(await beside(words.size)).toBe(words.notQuantity)
    await user.clear(await field(words.size))
    await user.type(await field(words.size), '1.5Gi')
    expect(await beside(words.size)).toBe('')
  })

  it('says what the server refuses beside the field it is about, until that is changed', async () => {
    server.put(claim('data'))
    const { user, name, create } = await begin()
    await user.type(name, 'data')
    await create()
    await waitFor(async () => expect(await beside(words.name)).toMatch(words.taken))
    expect(screen.queryByText(words.refused)).toBeNull()
    await user.type(name, '2')
    expect(await beside(words.name)).toBe('')
  })

  it('says what the server refuses of no field above all, with what to do', async () => {
    server.on('POST', /persistentvolumeclaims$/, () => refusal(403, 'persistentvolumeclaims is forbidden: User "jane" cannot create resource "persistentvolumeclaims" in API group "" in the namespace "default"', { reason: 'Forbidden' }))
    const { user, name, create } = await begin()
    await user.type(name, 'data')
    await create()
    const alert = (await screen.findByText(words.refused)).closest<HTMLElement>('[role=alert]')!
    expect(alert.textContent).toMatch(words.next)
    if (language === 'zh') expect(alert.textContent).toContain('用户 jane 在项目 default 中没有权限对 persistentvolumeclaims 执行 create')
  })

  it('is sent with Enter, and leads to the list', async () => {
    const { user, name } = await begin()
    await user.type(name, 'data{Enter}')
    expect(await screen.findByText(words.done)).toBeTruthy()
    expect(await screen.findByRole('link', { name: 'data' })).toBeTruthy()
    expect(server.written('POST', 'persistentvolumeclaims')).toMatchObject([{ metadata: { name: 'data' }, spec: { resources: { requests: { storage: '1Gi' } }, accessModes: ['ReadWriteMany'] } }])
  })
})

describe('what the server refuses', () => {
  it('is found by the path it names', async () => {
    const causes = [{ field: 'spec.resources.requests[storage]', message: 'Invalid value: "1Gi": must be at least 2Gi' }]
    server.on('POST', /persistentvolumeclaims$/, () => refusal(422, 'PersistentVolumeClaim "data" is invalid', { reason: 'Invalid', details: { causes } }))
    const user = open('/build/default/volumes/new')
    await user.type(await field('Name'), 'data{Enter}')
    await waitFor(async () => expect(await beside('Size')).toContain('must be at least 2Gi'))
    expect(await beside('Name')).toBe('')
  })
})

describe('the YAML of a form', () => {
  it('has what was filled in, and gives back what the form does not know', async () => {
    const user = open('/build/default/volumes/new')
    await user.type(await field('Name'), 'data')
    await user.click(screen.getByRole('button', { name: 'Preview YAML' }))
    await screen.findByRole('dialog', { name: 'Preview YAML' })
    await waitFor(() => expect(readYaml()).toContain('name: data'))
    await writeYaml(readYaml().replace('name: data', 'name: data2\n  annotations: {kept: "yes"}'))
    await user.click(screen.getByRole('button', { name: 'Take over into the form' }))
    await waitFor(async () => expect((await field('Name') as HTMLInputElement).value).toBe('data2'))
    await user.type(await field('Name'), '{Enter}')
    await waitFor(() => expect(server.written('POST', 'persistentvolumeclaims')).toMatchObject([{ metadata: { name: 'data2', annotations: { kept: 'yes' } } }]))
  })

  it('leaves the form as it was when it is only looked at', async () => {
    const user = open('/build/default/volumes/new')
    await user.type(await field('Name'), 'data')
    const button = screen.getByRole('button', { name: 'Preview YAML' })
    await user.click(button)
    const dialog = await screen.findByRole('dialog', { name: 'Preview YAML' })
    await writeYaml('kind: nonsense')
    expect(within(dialog).getByRole('button', { name: 'Take over into the form' }).hasAttribute('disabled')).toBe(true)
    await user.click(within(dialog).getByRole('button', { name: 'Cancel' }))
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull())
    expect((await field('Name') as HTMLInputElement).value).toBe('data')
    await waitFor(() => expect(document.activeElement).toBe(button))
  })
})

describe('rows of keys and values', () => {
  it('keep what was written while another key is like theirs for a moment', async () => {
    const user = open('/build/default/configmaps/new')
    await user.type(await field('Name'), 'settings')
    await user.type(await field('Key 1'), 'a')
    await user.type(await field('Value 1'), 'first')
    await user.click(await field('Data'))
    await user.type(await field('Key 2'), 'ab')
    await user.type(await field('Value 2'), 'second')
    expect((await field('Value 1') as HTMLTextAreaElement).value).toBe('first')
    await user.click(screen.getByRole('button', { name: 'Create' }))
    await waitFor(() => expect(server.written('POST', 'configmaps')).toMatchObject([{ data: { a: 'first', ab: 'second' } }]))
  })

  it('say that a key stands there twice', async () => {
    const user = open('/build/default/configmaps/new', 'zh')
    await user.type(await field('键 1'), 'a')
    await user.click(await field('数据'))
    await user.type(await field('键 2'), 'a')
    expect(screen.getByText('键 a 出现了两次，只有后一个有效')).toBeTruthy()
  })
})

describe('a copy', () => {
  it('is filled in with another name, and without what was of the first', async () => {
    server.put(job('train', { type: 'Succeeded', status: 'True' }))
    open('/build/default/jobs/new/pytorchjobs?from=train')
    expect(await screen.findByText('Filled in from train; look it over, then create it.')).toBeTruthy()
    expect((await field('Name') as HTMLInputElement).value).toMatch(/^train-/)
  })

  it('of what is gone is an empty form that says so', async () => {
    open('/build/default/jobs/new/pytorchjobs?from=train', 'zh')
    expect(await screen.findByText(/^train 不存在，表单是空的：train 不存在$/)).toBeTruthy()
    expect((await field('名称') as HTMLInputElement).value).toBe('')
  })
})

describe.each([
  ['en', 'Create from YAML', 'Create', /^Line 4: /, 'Secret odd could not be created', /Line 9: .*stringDate/, 'Document 1'],
  ['zh', '从 YAML 创建', '创建', /^第 4 行：/, 'Secret odd 未能创建', /第 9 行：.*没有 stringDate 这个字段/, '第 1 个文档'],
] as const)('creating from YAML (%s)', (language, title, create, mistake, refused, line, numbered) => {
  const dialog = async () => {
    const user = open('/build/default/overview', language)
    await user.click(await screen.findByRole('button', { name: title }))
    return { user, dialog: await screen.findByRole('dialog', { name: title }) }
  }

  it('points at the line of a mistake', async () => {
    const { dialog: shown } = await dialog()
    await writeYaml('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x\ndata: {}\n')
    expect(await within(shown).findByText(mistake)).toBeTruthy()
    expect(within(shown).getByRole('button', { name: create }).hasAttribute('disabled')).toBe(true)
  })

  it('names the document that lacks something', async () => {
    const { dialog: shown } = await dialog()
    await writeYaml('metadata: {name: x}\n')
    expect(await within(shown).findByText(new RegExp(numbered))).toBeTruthy()
  })

  it('points at what only the server finds, creates the rest once, and no more of it when it is mended', async () => {
    server.on('POST', /secrets$/, () => refusal(400, 'Secret in version "v1" cannot be handled as a Secret: strict decoding error: unknown field "stringDate"', { reason: 'BadRequest' }))
    const { user, dialog: shown } = await dialog()
    await writeYaml('apiVersion: v1\nkind: ConfigMap\nmetadata: {name: fine}\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: odd\nstringDate: {}\n')
    await waitFor(() => expect(within(shown).getByRole('button', { name: create }).hasAttribute('disabled')).toBe(false))
    await user.click(within(shown).getByRole('button', { name: create }))
    expect(await within(shown).findByText(refused)).toBeTruthy()
    expect(within(shown).getByText(refused).closest('[role=alert]')!.textContent).toMatch(line)
    await waitFor(() => expect(document.querySelector('.cm-lint-marker-error')).toBeTruthy()) // beside the line itself
    await user.click(await within(shown).findByRole('button', { name: new RegExp(`${create}$`) }))
    await waitFor(() => expect(server.written('POST', 'secrets')).toHaveLength(2))
    expect(server.written('POST', 'configmaps')).toHaveLength(1)
  })
})

describe('the YAML of an object', () => {
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'key' }, data: { token: 'bm9ib2R5cw==' } }

  it('hides the values of a secret until they are asked for', async () => {
    server.put(secret)
    const user = open('/build/default/secrets/key?tab=yaml')
    const show = await screen.findByRole('button', { name: /Show values$/ })
    await waitFor(() => expect(readYaml()).toContain('••••••••'))
    expect(readYaml()).not.toContain('bm9ib2R5cw==')
    await user.click(show)
    await waitFor(() => expect(readYaml()).toContain('bm9ib2R5cw=='))
  })

  it('is edited with the values, never with the dots', async () => {
    server.put(secret)
    const user = open('/build/default/secrets/key?tab=yaml')
    await user.click(await screen.findByRole('button', { name: 'Edit' }))
    await waitFor(() => expect(readYaml()).toContain('bm9ib2R5cw=='))
    await user.click(screen.getByRole('button', { name: 'Save' }))
    await waitFor(() => expect(server.written('PUT', 'secrets')).toMatchObject([{ data: { token: 'bm9ib2R5cw==' } }]))
  })

  it.each([
    ['en', 'Edit', 'Save', 'The object has changed while you were editing. Load it again and edit that.'],
    ['zh', '编辑', '保存', '对象在您编辑期间被修改了。重新载入后再编辑。'],
  ] as const)('is kept when somebody else was faster (%s)', async (language, edit, save, told) => {
    server.put(configMap('box'))
    server.on('PUT', /configmaps\/box$/, () => refusal(409, 'Operation cannot be fulfilled on configmaps "box": the object has been modified', { reason: 'Conflict' }))
    const user = open('/build/default/configmaps/box?tab=yaml', language)
    await user.click(await screen.findByRole('button', { name: edit }))
    await waitFor(() => expect(readYaml()).toContain('key: value'))
    await writeYaml(readYaml().replace('key: value', 'key: mine'))
    await user.click(screen.getByRole('button', { name: save }))
    expect(await screen.findByText(told)).toBeTruthy()
    expect(readYaml()).toContain('key: mine')
  })

  it('that is being edited is not replaced by what comes from the server', async () => {
    server.put(pod('box'))
    const user = open('/build/default/pods/box?tab=yaml')
    await user.click(await screen.findByRole('button', { name: 'Edit' }))
    await writeYaml(`${readYaml()}# mine\n`)
    server.put(pod('box', { phase: 'Succeeded' }))
    await waitFor(() => expect(screen.getByText('Succeeded')).toBeTruthy())
    expect(readYaml()).toContain('# mine')
  })
})
