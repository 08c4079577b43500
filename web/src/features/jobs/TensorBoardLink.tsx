/** A dot with the TensorBoard's live state, which opens it in a new tab. */
import { Badge, Button } from 'antd'
import { useState } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { stateOf, type Tone } from '../../ui/state'
import { useOpenApp } from '../../ui/useOpenApp'
import { useSaid } from '../../why/useSaid'
import { storedCauses } from '../../why/why'
import { useTensorBoard } from './useJob'
import { words } from './words'

const DOTS: Record<Tone, 'success' | 'processing' | 'warning' | 'error' | 'default'> = { good: 'success', busy: 'success', waiting: 'processing', bad: 'error', quiet: 'default' }

export function TensorBoardLink({ job }: { job: KubeObject }) {
  const w = useWords(words)
  const openInTab = useOpenApp()
  const said = useSaid()
  const { wanted, object } = useTensorBoard(job)
  const [busy, setBusy] = useState(false)
  if (!object) return <span className="quiet">{w(wanted ? 'tensorboardComing' : 'tensorboardNone')}</span>
  const { name, namespace = '' } = object.metadata
  const state = stateOf(object)
  const open = async (): Promise<void> => {
    setBusy(true)
    await openInTab(namespace, 'tensorboard', name)
    setBusy(false)
  }
  return (
    <span className="row">
      <Badge status={DOTS[state.tone]} />
      {state.word === 'Running' ? (
        <Button type="link" size="small" loading={busy} onClick={() => void open()} title={w('openTensorboard', { name })} style={{ paddingInline: 0 }}>
          {state.word}
        </Button>
      ) : (
        <span>{state.word}</span>
      )}
      {state.message && state.word !== 'Running' && <span className="quiet break">{said.stored(state.message, storedCauses(object))}</span>}
      <Link to={`/build/${namespace}/tensorboards/${name}`}>{name}</Link>
    </span>
  )
}
