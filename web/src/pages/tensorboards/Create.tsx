import { useMemo } from 'react'
import { useSearchParams } from 'react-router-dom'
import { CreatePage } from '../../forms/CreatePage'
import { exampleOf, formOf } from '../../forms/bundled'
import { initialValue, write } from '../../forms/value'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS } from '../../kube'
import { words } from './words'

export default function Create() {
  const w = useWords(words)
  const namespace = useNamespace()
  const form = useMemo(() => formOf('TensorBoard')!, [])
  const [params] = useSearchParams()
  // The file browser leads here with the folder of a log.
  const initial = useMemo(() => {
    const empty = initialValue(form, KINDS.TensorBoard.apiVersion, KINDS.TensorBoard.kind, exampleOf('TensorBoard'))
    return write(write(empty, 'spec.logDir.pvc.0.name', params.get('claim') ?? ''), 'spec.logDir.pvc.0.subPath.0', params.get('folder') ?? '')
  }, [form, params])
  return <CreatePage kind={KINDS.TensorBoard} namespace={namespace} form={form} title={w('create')} list={{ label: w('title'), to: `/build/${namespace}/tensorboards` }} initial={initial} />
}
