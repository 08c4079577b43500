import { CreatePage } from '../../forms/CreatePage'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS } from '../../kube'
import { form } from './form'
import { words } from './words'

const INITIAL = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {},
  spec: { restartPolicy: 'Never', containers: [{ name: 'main' }] },
}

export default function CreatePod() {
  const w = useWords(words)
  const namespace = useNamespace()
  return <CreatePage kind={KINDS.Pod} namespace={namespace} form={form} title={w('create')} initial={INITIAL} list={{ label: w('title'), to: `/build/${namespace}/pods` }} />
}
