import { formOf } from '../../forms/bundled'
import { CreatePage } from '../../forms/CreatePage'
import { read, write } from '../../forms/value'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS } from '../../kube'
import { HOME } from './reading'
import { words } from './words'

const form = formOf('Queue')!

export default function CreateQueue() {
  const w = useWords(words)
  const namespace = useNamespace()
  return (
    <CreatePage
      kind={KINDS.Queue}
      namespace={HOME}
      form={form}
      title={w('create')}
      list={{ label: w('title'), to: `/build/${namespace}/queues` }}
      // Without labels every project may use it; a queue that nobody may use is made in the YAML.
      finish={(value) => (read(value, 'spec.namespaceSelector') === undefined ? write(value, 'spec.namespaceSelector', {}) : value)}
    />
  )
}
