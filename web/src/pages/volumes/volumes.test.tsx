/** Volumes: what the list says of them, making one, making one larger, its page and the way to its files. */
import { act, screen, waitFor, within } from '@testing-library/react'
import { describe, expect, it } from 'vitest'
import type { KubeObject } from '../../kube'
import { claim, pod } from '../../testing/objects'
import { open, server } from '../../testing/page'
import { refusal } from '../../testing/server'

const row = (name: string): Promise<HTMLElement> => screen.findByRole('link', { name }).then((link) => link.closest<HTMLElement>('[role=row]')!)
const cells = async (name: string): Promise<(string | null)[]> => within(await row(name)).getAllByRole('cell').map((cell) => cell.textContent)
const uses = (name: string, claimName: string, status?: object): KubeObject => pod(name, status, { volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }] })
const storageClass = (name: string): KubeObject => ({ apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata: { name } }) as KubeObject

describe('the list', () => {
  it('says how large each is, how it is used and by whom', async () => {
    const waiting = { ...claim('waiting', '5Gi'), status: { phase: 'Pending' } }
    server.put(claim('data'), waiting, uses('trainer', 'data'), uses('over', 'data', { phase: 'Succeeded' }))
    open('/build/default/volumes')
    expect(await cells('data')).toEqual(expect.arrayContaining(['Bound', '10Gi', 'ReadWriteMany', 'trainer']))
    expect(await cells('waiting')).toEqual(expect.arrayContaining(['Pending', '5Gi', 'Nobody']))
  })

  it.each([
    ['en', 'Nothing to show. Notebooks and jobs keep their files in volumes: create one first.'],
    ['zh', '没有可展示的条目。Notebook 和作业的文件保存在持久卷里，先创建一个。'],
  ] as const)('says what volumes are for while there are none (%s)', async (language, text) => {
    open('/build/default/volumes', language)
    expect(await screen.findByText(text)).toBeTruthy()
  })
})

describe('making one', () => {
  it('asks for a name, and offers the classes that there are', async () => {
    server.put(storageClass('fast'), storageClass('slow'))
    const user = open('/build/default/volumes')
    await user.click(await screen.findByRole('button', { name: 'Create PVC' }))
    await user.click(await screen.findByRole('button', { name: 'Create' }))
    expect(await screen.findByText('Name is needed')).toBeTruthy()
    expect(server.written('POST', 'persistentvolumeclaims')).toEqual([])
    await user.type(screen.getByLabelText('Name'), 'data')
    await user.click(screen.getByLabelText('Storage class'))
    await user.click(await screen.findByTitle('slow'))
    await user.click(screen.getByRole('button', { name: 'Create' }))
    await waitFor(() => expect(server.written('POST', 'persistentvolumeclaims')).toHaveLength(1))
    expect(server.written('POST', 'persistentvolumeclaims')[0]).toMatchObject({
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'slow' },
    })
    expect(await row('data')).toBeTruthy()
  })
})

describe('making one larger', () => {
  it.each([
    ['en', 'Expand', 'Expand data', 'It must be more than the 10Gi of now', 'Asked for 20Gi'],
    ['zh', '扩容', '扩容 data', '要大于现在的 10Gi', '已请求扩容到 20Gi'],
  ] as const)('takes more than it has, and no less (%s)', async (language, button, title, refused, asked) => {
    server.put(claim('data'))
    const user = open('/build/default/volumes/data', language)
    await user.click(await screen.findByRole('button', { name: button }))
    const dialog = await screen.findByRole('dialog')
    expect(within(dialog).getByText(title)).toBeTruthy()
    const size = within(dialog).getByRole('textbox')
    await user.clear(size)
    await user.type(size, '10Gi{Enter}')
    expect(await within(dialog).findByText(refused)).toBeTruthy()
    expect(server.written('PATCH', 'persistentvolumeclaims')).toEqual([])
    await user.clear(size)
    await user.type(size, '20Gi{Enter}')
    expect(await screen.findByText(asked)).toBeTruthy()
    expect(server.written('PATCH', 'persistentvolumeclaims')).toEqual([{ spec: { resources: { requests: { storage: '20Gi' } } } }])
  })

  it('says why the server will not', async () => {
    server.put(claim('data'))
    server.on('PATCH', /persistentvolumeclaims\/data$/, () => refusal(403, 'persistentvolumeclaims "data" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize'))
    const user = open('/build/default/volumes/data')
    await user.click(await screen.findByRole('button', { name: 'Expand' }))
    const dialog = await screen.findByRole('dialog')
    await user.clear(within(dialog).getByRole('textbox'))
    await user.type(within(dialog).getByRole('textbox'), '20Gi{Enter}')
    expect(await within(dialog).findByText(/only dynamically provisioned pvc can be resized/)).toBeTruthy()
  })
})

describe('the page', () => {
  it('follows what happens to the volume', async () => {
    server.put({ ...claim('data'), status: { phase: 'Pending' } })
    open('/build/default/volumes/data')
    expect((await screen.findByRole('heading', { level: 1 })).parentElement?.textContent).toContain('Pending')
    act(() => server.put({ ...claim('data'), spec: { ...(claim('data').spec as object), volumeName: 'pv-1' } }))
    expect(await screen.findByText('pv-1')).toBeTruthy()
    expect(screen.getByRole('heading', { level: 1 }).parentElement?.textContent).toContain('Bound')
  })

  it('starts a pod to see its files, which is taken for no user of it', async () => {
    server.put(claim('data'))
    const user = open('/build/default/volumes/data?tab=files')
    await user.click(await screen.findByRole('button', { name: 'Start' }))
    await waitFor(() => expect(server.written('POST', 'pods')).toHaveLength(1))
    const made = server.written('POST', 'pods')[0] as { metadata: { name: string }; spec: object }
    expect(JSON.stringify(made.spec)).toContain('"claimName":"data"')
    expect(await screen.findByText(`Pod ${made.metadata.name} is starting…`)).toBeTruthy()
    await user.click(screen.getByRole('tab', { name: 'PersistentVolumeClaim' }))
    expect(await screen.findByText('Nobody')).toBeTruthy()
  })
})
