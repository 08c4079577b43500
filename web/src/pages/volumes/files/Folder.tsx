/** One folder of a volume: what is in it, and what can be done with it. */
import { FileImageOutlined, FileOutlined, FolderFilled, LineChartOutlined, ReloadOutlined } from '@ant-design/icons'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Alert, App, Breadcrumb, Button, Input, Progress } from 'antd'
import { useRef, useState, type ReactNode } from 'react'
import { useWords } from '../../../i18n'
import { bytes, listFolder, makeFolder, moveEntry, readFile, readFolder, removeEntry, writeFile, type Entry, type KubeObject, type Place } from '../../../kube'
import { DataTable } from '../../../ui/table/DataTable'
import { Dialog } from '../../../ui/popup/Dialog'
import { Moment } from '../../../ui/Time'
import { useSaid } from '../../../why/useSaid'
import { crumbsOf, join, previewOf, ROOT } from './explorer'
import { Preview } from './Preview'
import { words } from './words'

const ICONS = { image: <FileImageOutlined />, events: <LineChartOutlined />, text: <FileOutlined /> }

export function Folder({ place, claim, extra }: { place: Place; claim: KubeObject; extra: ReactNode }) {
  const w = useWords(words)
  const { modal, message, notification } = App.useApp()
  const queries = useQueryClient()
  const said = useSaid()
  const [folder, setFolder] = useState(ROOT)
  const [shown, setShown] = useState<Entry>()
  const [naming, setNaming] = useState<{ title: string; first: string; done: (name: string) => Promise<unknown> }>()
  const [upload, setUpload] = useState<{ name: string; percent: number }>()
  const chooser = useRef<HTMLInputElement>(null)
  const listed = useQuery({ queryKey: ['folder', place, folder], queryFn: () => listFolder(place, folder), retry: false })
  const reload = (): Promise<void> => queries.invalidateQueries({ queryKey: ['folder', place, folder] })
  const entries = [...(listed.data ?? [])].sort((a, b) => Number(b.type === 'folder') - Number(a.type === 'folder') || a.name.localeCompare(b.name))

  const run = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work()
      await reload()
    } catch (error) {
      notification.error({ message: w('failed', { message: said.error(error) }) })
    }
  }
  const send = async (files: readonly File[]): Promise<void> => {
    for (const file of files) {
      const there = entries.some((entry) => entry.name === file.name)
      if (there && !(await asked(modal, w('overwrite', { name: file.name }), w('overwriteOk'), w('cancel')))) continue
      await run(async () => {
        setUpload({ name: file.name, percent: 0 })
        await writeFile(place, join(folder, file.name), file, (sent) => setUpload({ name: file.name, percent: file.size ? Math.floor((100 * sent) / file.size) : 100 }))
        void message.success(w('uploaded', { name: file.name }))
      })
      setUpload(undefined)
    }
  }
  const download = (entry: Entry): Promise<void> =>
    run(async () => {
      const path = join(folder, entry.name)
      if (entry.type === 'folder') save(await readFolder(place, path), `${entry.name}.tar`)
      else save(await readFile(place, path), entry.name)
    })
  const remove = (entry: Entry): void =>
    void modal.confirm({
      title: w('deleteTitle', { name: entry.name }),
      content: w(entry.type === 'folder' ? 'deleteFolder' : 'deleteFile'),
      okText: w('delete'),
      okButtonProps: { danger: true },
      cancelText: w('cancel'),
      autoFocusButton: 'cancel',
      onOk: () => run(() => removeEntry(place, join(folder, entry.name))),
    })
  const inClaim = folder.slice(ROOT.length + 1)
  const boardLink = `/build/${place.namespace}/tensorboards/new?claim=${encodeURIComponent(claim.metadata.name)}&folder=${encodeURIComponent(inClaim)}`
  return (
    <>
      <div className="table-tools">
        <Breadcrumb
          items={[['', ROOT], ...crumbsOf(folder)].map(([label, path]) => ({
            title: path === folder ? label || claim.metadata.name : <a role="button" tabIndex={0} onClick={() => setFolder(path!)} onKeyDown={(event) => event.key === 'Enter' && setFolder(path!)}>{label || claim.metadata.name}</a>,
          }))}
        />
        <span className="grow" />
        <Button icon={<ReloadOutlined />} aria-label={w('refresh')} onClick={() => void reload()} />
        <Button onClick={() => setNaming({ title: w('newFolder'), first: '', done: (name) => makeFolder(place, join(folder, name)) })}>{w('newFolder')}</Button>
        <Button type="primary" loading={upload !== undefined} onClick={() => chooser.current?.click()}>
          {w('upload')}
        </Button>
        {extra}
        <input
          ref={chooser}
          type="file"
          multiple
          hidden
          aria-label={w('upload')}
          onChange={(event) => {
            const files = [...(event.target.files ?? [])]
            event.target.value = ''
            void send(files)
          }}
        />
      </div>
      {upload && (
        <div role="status">
          {w('uploading', upload)}
          <Progress percent={upload.percent} showInfo={false} size="small" />
        </div>
      )}
      {listed.error && <Alert type="error" showIcon message={w('failed', { message: said.error(listed.error) })} />}
      <div
        onDragOver={(event) => event.preventDefault()}
        onDrop={(event) => {
          event.preventDefault()
          void send([...event.dataTransfer.files])
        }}
      >
        <DataTable<Entry>
          rowKey="name"
          dataSource={entries}
          loading={listed.isLoading}
          what={folder || '/'}
          locale={{ emptyText: w('empty') }}
          pagination={{ defaultPageSize: 50, hideOnSinglePage: true }}
          columns={[
            {
              title: w('name'),
              className: 'cell-name',
              sorter: (a, b) => (a.name < b.name ? -1 : 1),
              render: (_, entry) => (
                <Button type="link" size="small" className="file-name" icon={entry.type === 'folder' ? <FolderFilled /> : ICONS[previewOf(entry.name)]} onClick={() => (entry.type === 'folder' ? setFolder(join(folder, entry.name)) : setShown(entry))}>
                  {entry.name}
                </Button>
              ),
            },
            { title: w('size'), sorter: (a, b) => a.size - b.size, render: (_, entry) => <span className="nowrap">{entry.type === 'folder' ? '-' : bytes(entry.size)}</span> },
            { title: w('modified'), sorter: (a, b) => a.modified - b.modified, render: (_, entry) => <Moment at={new Date(entry.modified * 1000).toISOString()} /> },
            {
              title: w('actions'),
              render: (_, entry) => (
                <span className="row file-actions">
                  <Button type="link" size="small" onClick={() => void download(entry)} aria-label={`${w('download')} ${entry.name}`}>
                    {w('download')}
                  </Button>
                  <Button type="link" size="small" onClick={() => setNaming({ title: w('rename'), first: entry.name, done: (name) => moveEntry(place, join(folder, entry.name), join(folder, name)) })} aria-label={`${w('rename')} ${entry.name}`}>
                    {w('rename')}
                  </Button>
                  <Button type="link" size="small" danger onClick={() => remove(entry)} aria-label={`${w('delete')} ${entry.name}`}>
                    {w('delete')}
                  </Button>
                </span>
              ),
            },
          ]}
        />
      </div>
      {naming && <NameDialog {...naming} onClose={() => setNaming(undefined)} onName={(name) => run(() => naming.done(name))} />}
      {shown && <Preview place={place} path={join(folder, shown.name)} entry={shown} boardLink={boardLink} onDownload={() => void download(shown)} onClose={() => setShown(undefined)} />}
    </>
  )
}

function NameDialog({ title, first, onName, onClose }: { title: string; first: string; onName: (name: string) => Promise<void>; onClose: () => void }) {
  const w = useWords(words)
  const [name, setName] = useState(first)
  const bad = name.trim() === '' || name.includes('/')
  const done = async (): Promise<void> => {
    if (bad) return
    await onName(name.trim())
    onClose()
  }
  return (
    <Dialog title={title} okButtonProps={{ disabled: bad }} cancelText={w('cancel')} onCancel={onClose} onOk={() => void done()}>
      <Input autoFocus aria-label={title} value={name} onChange={(event) => setName(event.target.value)} onPressEnter={() => void done()} />
      {name !== '' && bad && <span className="quiet">{w('badName')}</span>}
    </Dialog>
  )
}

type Modals = ReturnType<typeof App.useApp>['modal']

const asked = (modal: Modals, title: string, okText: string, cancelText: string): Promise<boolean> =>
  new Promise((resolve) => void modal.confirm({ title, okText, cancelText, onOk: () => resolve(true), onCancel: () => resolve(false) }))

function save(content: Uint8Array, name: string): void {
  const url = URL.createObjectURL(new Blob([content as Uint8Array<ArrayBuffer>]))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  URL.revokeObjectURL(url)
}
