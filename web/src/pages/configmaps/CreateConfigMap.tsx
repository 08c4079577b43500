import { Input } from 'antd'
import { CreatePage } from '../../forms/CreatePage'
import { read, write } from '../../forms/value'
import { usePairs } from '../../forms/usePairs'
import { Rows, type WidgetProps } from '../../forms/widgets'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS } from '../../kube'
import { words as common } from '../../ui/words'
import { form } from './form'
import { words } from './words'

const INITIAL = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {}, data: { '': '' } }

export default function CreateConfigMap() {
  const w = useWords(words)
  const namespace = useNamespace()
  return (
    <CreatePage
      kind={KINDS.ConfigMap}
      namespace={namespace}
      form={form}
      title={w('create')}
      initial={INITIAL}
      list={{ label: w('title'), to: `/build/${namespace}/configmaps` }}
      overrides={{ data: (props) => <DataRows {...props} /> }}
      finish={(value) => write(value, 'data', Object.fromEntries(Object.entries((read(value, 'data') ?? {}) as object).filter(([key]) => key !== '')))}
    />
  )
}

/** Keys with values of many lines: whole files are common. */
function DataRows({ id, object, path, onChange }: WidgetProps) {
  const c = useWords(common)
  const [rows, save] = usePairs((read(object, path) ?? {}) as Record<string, string>, (data) => onChange({ ...object, data }))
  return (
    <Rows
      id={id}
      keys={rows.map(([key]) => key)}
      count={rows.length}
      onAdd={() => save([...rows, ['', '']])}
      onRemove={(index) => save(rows.filter((_, at) => at !== index))}
      render={(index) => {
        const [key, value] = rows[index]!
        return (
          <>
            <Input style={{ flex: 1 }} aria-label={`${c('labelKey')} ${index + 1}`} placeholder={c('labelKey')} value={key} onChange={(event) => save(rows.map((old, at) => (at === index ? [event.target.value, value] : old)))} />
            <Input.TextArea
              style={{ flex: 2 }}
              className="mono"
              autoSize={{ minRows: 1, maxRows: 16 }}
              aria-label={`${c('labelValue')} ${index + 1}`}
              placeholder={c('labelValue')}
              value={value}
              onChange={(event) => save(rows.map((old, at) => (at === index ? [key, event.target.value] : old)))}
            />
          </>
        )
      }}
    />
  )
}
