/** 存储卷: its type, what it holds, its name and where the first container mounts it. */
import { Input, Select } from 'antd'
import { useWords } from '../i18n'
import { words as uiWords } from '../ui/words'
import { Suggest } from './Suggest'
import { addRow, changeRow, removeRow, rowsOf, TYPES, type Row } from './volumes'
import { Rows, type WidgetProps } from './widgets'
import { words } from './words'

const SOURCES = { persistentVolumeClaim: 'PersistentVolumeClaim', secret: 'Secret', configMap: 'ConfigMap' } as const

export function VolumesWidget({ id, path, object, onChange, choices = [] }: WidgetProps) {
  const ui = useWords(uiWords)
  const w = useWords(words)
  const rows = rowsOf(object, path)
  const typeName = (type: Row['type']): string => (type in SOURCES ? SOURCES[type as keyof typeof SOURCES] : w(type as 'emptyDir' | 'memory'))
  return (
    <Rows
      id={id}
      count={rows.length}
      onAdd={() => onChange(addRow(object, path))}
      onRemove={(index) => onChange(removeRow(object, path, index))}
      render={(index) => {
        const { name, row } = rows[index]!
        if (!row) return <span className="grow">{ui('otherVolume', { name })}</span>
        const change = (part: Partial<Row>): void => onChange(changeRow(object, path, index, part))
        const label = (text: string): { 'aria-label': string; placeholder: string } => ({ 'aria-label': `${text} ${index + 1}`, placeholder: text })
        return (
          <div className="grow" style={{ display: 'grid', gridTemplateColumns: 'repeat(auto-fit, minmax(150px, 1fr))', gap: 8 }}>
            <Select {...label(ui('type'))} value={row.type} onChange={(type: Row['type']) => change({ type, source: '' })} options={TYPES.map((value) => ({ value, label: typeName(value) }))} />
            {row.type in SOURCES && (
              <Suggest {...label(typeName(row.type))} value={row.source} options={row.type === 'persistentVolumeClaim' ? choices.map((value) => ({ value })) : []} onChange={(source: string) => change({ source })} />
            )}
            <Input {...label(w('mountName'))} value={row.name} onChange={(event) => change({ name: event.target.value })} />
            <Input {...label(ui('mountPath'))} value={row.mountPath} onChange={(event) => change({ mountPath: event.target.value })} />
          </div>
        )
      }}
    />
  )
}
