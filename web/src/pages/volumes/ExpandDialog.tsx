import { App, Form, Input } from 'antd'
import { useState } from 'react'
import { useWords } from '../../i18n'
import { field, isQuantity, KINDS, patchObject, quantity, type KubeObject } from '../../kube'
import { Dialog } from '../../ui/popup/Dialog'
import { words as common } from '../../ui/words'
import { useSaid } from '../../why/useSaid'
import { words } from './words'

export function ExpandDialog({ claim, onClose }: { claim: KubeObject; onClose: () => void }) {
  const w = useWords(words)
  const said = useSaid()
  const c = useWords(common)
  const { message } = App.useApp()
  const now: string = field(claim, 'spec.resources.requests.storage') ?? ''
  const [size, setSize] = useState(now)
  const [error, setError] = useState<string>()
  const [busy, setBusy] = useState(false)
  const save = async (): Promise<void> => {
    if (!isQuantity(size)) return setError(c('notQuantity'))
    if (quantity(size) <= quantity(now)) return setError(w('notLarger', { size: now }))
    setBusy(true)
    try {
      await patchObject(KINDS.PersistentVolumeClaim, claim.metadata.namespace, claim.metadata.name, { spec: { resources: { requests: { storage: size } } } })
      void message.success(w('expanded', { size }))
      onClose()
    } catch (refused) {
      setError(said.error(refused))
    } finally {
      setBusy(false)
    }
  }
  return (
    <Dialog title={w('expandTitle', { name: claim.metadata.name })} okText={w('expand')} cancelText={c('cancel')} confirmLoading={busy} onOk={() => void save()} onCancel={onClose}>
      <Form layout="vertical">
        <Form.Item label={w('size')} htmlFor="expand-size" help={error ?? w('expandHelp', { size: now })} {...(error ? { validateStatus: 'error' as const } : {})}>
          <Input id="expand-size" autoFocus value={size} onChange={(event) => { setSize(event.target.value); setError(undefined) }} onPressEnter={() => void save()} />
        </Form.Item>
      </Form>
    </Dialog>
  )
}
