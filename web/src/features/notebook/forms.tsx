import { Input, Select } from 'antd'
import { SectionTitle, type Overrides } from '../../forms/ObjectForm'
import { read, write, type Value } from '../../forms/value'
import { Rows } from '../../forms/widgets'
import { useWords } from '../../i18n'
import type { FormPart } from '../../kinds/features'
import { KINDS, useList } from '../../kube'
import { dataVolumes, TYPES, withDataVolumes, withNames } from './reading'
import { words } from './words'

const overrides: Overrides = {
  'spec.type': ({ id, object, path, onChange }) => (
    <Select id={id} value={read(object, path) as string} onChange={(type: string) => onChange(write(object, path, type))} options={Object.entries(TYPES).map(([value, label]) => ({ value, label }))} />
  ),
}

function DataVolumes({ namespace, value, onChange }: { namespace: string; value: Value; onChange: (value: Value) => void }) {
  const w = useWords(words)
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace })
  const rows = dataVolumes(value)
  const save = (next: typeof rows): void => onChange(withDataVolumes(value, next))
  return (
    <fieldset className="panel" style={{ margin: '0 0 16px' }}>
      <SectionTitle>{w('dataVolumes')}</SectionTitle>
      <Rows
        count={rows.length}
        onAdd={() => save([...rows, { claim: '', mountPath: '' }])}
        onRemove={(index) => save(rows.filter((_, at) => at !== index))}
        render={(index) => {
          const row = rows[index]!
          const put = (part: Partial<typeof row>): void => save(rows.map((old, at) => (at === index ? { ...row, ...part } : old)))
          return (
            <>
              <Select showSearch style={{ flex: 1 }} aria-label={`${w('claim')} ${index + 1}`} placeholder={w('claim')} value={row.claim || null} onChange={(claim: string) => put({ claim })} options={claims.items.map((each) => ({ value: each.metadata.name }))} />
              <Input style={{ flex: 1 }} aria-label={`${w('mountPath')} ${index + 1}`} placeholder={w('mountPath')} value={row.mountPath} onChange={(event) => put({ mountPath: event.target.value })} />
            </>
          )
        }}
      />
    </fieldset>
  )
}

export const FORMS: Record<string, FormPart> = { 'notebook-volumes': { overrides, finish: withNames, Section: DataVolumes } }
