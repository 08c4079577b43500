/** An object's YAML: to read, and to edit with the server's own validation. */
import { EyeInvisibleOutlined, EyeOutlined } from '@ant-design/icons'
import { App, Alert, Button, Checkbox, Space } from 'antd'
import { useEffect, useState } from 'react'
import { useWords } from '../../i18n'
import { findKind, KubeError, replaceObject, type KubeObject } from '../../kube'
import { useSaid } from '../../why/useSaid'
import { faultsOf } from './createDocuments'
import { keepsValues, withoutValues } from './hiding'
import { words } from '../words'
import { parseYaml, toYaml, type YamlFault } from './yamlText'
import { YamlEditor } from './YamlEditor'

export default function YamlPanel({ object, height = '60vh' }: { object: KubeObject; height?: string }) {
  const w = useWords(words)
  const { message } = App.useApp()
  const [editing, setEditing] = useState<string>()
  const [managed, setManaged] = useState(false)
  const [asked, setAsked] = useState(false)
  const [error, setError] = useState<string>()
  const [faults, setFaults] = useState<YamlFault[]>([])
  const said = useSaid()
  const [busy, setBusy] = useState(false)
  const hidden = keepsValues(object) && !asked
  const shown = toYaml(hidden ? withoutValues(object) : object, { managedFields: managed })
  useEffect(() => {
    setEditing(undefined)
    setAsked(false)
  }, [object.metadata.uid])
  const edit = (): void => {
    setAsked(true) // dots must never be saved as values
    setEditing(toYaml(object, { managedFields: managed }))
  }

  const send = async (dryRun: boolean): Promise<void> => {
    const parsed = parseYaml(editing ?? '')
    const [edited] = parsed.objects
    const fault = parsed.faults[0]
    if (fault || !edited) {
      setError(fault ? w('yamlError', { line: fault.line, message: said.message(fault.message) }) : w('nothingToCreate'))
      return
    }
    setBusy(true)
    setError(undefined)
    setFaults([])
    try {
      const kind = await findKind(edited.apiVersion ?? '', edited.kind ?? '')
      if (!kind) throw new Error(w('noSuchKind', { kind: edited.kind ?? '', apiVersion: edited.apiVersion ?? '' }))
      await replaceObject(kind, edited, { dryRun })
      void message.success(w(dryRun ? 'checkedFine' : 'saved'))
      if (!dryRun) setEditing(undefined)
    } catch (failed) {
      if (failed instanceof KubeError && failed.conflict) setError(w('saveConflict'))
      else {
        const found = faultsOf(failed, { object: edited, place: parsed.places[0]! })
        setError(found.map((each) => w('yamlError', { line: each.line, message: said.message(each.message) })).join('\n'))
        setFaults(found)
      }
    } finally {
      setBusy(false)
    }
  }
  const change = (text: string): void => {
    setEditing(text)
    if (faults.length > 0) setFaults([])
  }
  const copy = (): void => void navigator.clipboard.writeText(editing ?? shown).then(() => message.success(w('copied')))
  return (
    <div>
      <div className="table-tools">
        {editing === undefined ? (
          <Button onClick={edit}>{w('edit')}</Button>
        ) : (
          <Space>
            <Button type="primary" loading={busy} onClick={() => void send(false)}>
              {w('save')}
            </Button>
            <Button onClick={() => void send(true)} disabled={busy}>
              {w('check')}
            </Button>
            <Button onClick={() => { setEditing(undefined); setError(undefined) }}>{w('cancel')}</Button>
          </Space>
        )}
        {!hidden && <Button onClick={copy}>{w('copy')}</Button>}
        {keepsValues(object) && editing === undefined && (
          <Button icon={hidden ? <EyeOutlined /> : <EyeInvisibleOutlined />} onClick={() => setAsked(hidden)} aria-pressed={!hidden}>
            {w(hidden ? 'showValues' : 'hideValues')}
          </Button>
        )}
        <span className="grow" />
        {editing === undefined && (
          <Checkbox checked={managed} onChange={(event) => setManaged(event.target.checked)}>
            {w('managedFields')}
          </Checkbox>
        )}
      </div>
      {error && <Alert type="error" showIcon message={<span className="break">{error}</span>} style={{ marginBottom: 8 }} />}
      <YamlEditor value={editing ?? shown} faults={faults} onChange={change} readOnly={editing === undefined} height={height} label="YAML" />
    </div>
  )
}
