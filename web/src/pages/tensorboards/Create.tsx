import { useMemo } from 'react'
import { CreatePage } from '../../forms/CreatePage'
import { formOf } from '../../forms/bundled'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS } from '../../kube'
import { words } from './words'

export default function Create() {
  const w = useWords(words)
  const namespace = useNamespace()
  const form = useMemo(() => formOf('TensorBoard')!, [])
  return <CreatePage kind={KINDS.TensorBoard} namespace={namespace} form={form} title={w('create')} list={{ label: w('title'), to: `/build/${namespace}/tensorboards` }} />
}
