/** One widget for each word of form.yaml. A widget is given its value and says what it becomes; it knows no form. */
import { MinusCircleOutlined, PlusOutlined } from '@ant-design/icons'
import { Button, Input, InputNumber, Select, Switch } from 'antd'
import { useWords } from '../i18n'
import { words } from '../ui/words'
import type { FieldSpec } from './spec'
import { DevicesWidget } from './DevicesWidget'
import { ResourcesWidget } from './ResourcesWidget'
import { SchedulerWidget } from './SchedulerWidget'
import { SecretsWidget } from './SecretsWidget'
import { Suggest } from './Suggest'
import { read, write, type Value } from './value'
import { usePairs } from './usePairs'
import { VolumesWidget } from './VolumesWidget'

export interface WidgetProps {
  id: string
  field: FieldSpec
  /** the full path in the object */
  path: string
  /** the whole object: some widgets write beside their own path */
  object: Value
  onChange: (object: Value) => void
  /** names that may be chosen: claims, queues, … */
  choices: readonly string[] | undefined
  describedBy?: string | undefined
}

export function Widget(props: WidgetProps) {
  switch (props.field.widget) {
    case 'text':
      return <TextWidget {...props} />
    case 'number':
      return <NumberWidget {...props} />
    case 'switch':
      return <SwitchWidget {...props} />
    case 'select':
      return <SelectWidget {...props} />
    case 'quantity':
      return <TextWidget {...props} />
    case 'command':
      return <CommandWidget {...props} />
    case 'variables':
      return <VariablesWidget {...props} />
    case 'volumes':
      return <VolumesWidget {...props} />
    case 'claim':
      return <ClaimWidget {...props} />
    case 'secrets':
      return <SecretsWidget {...props} />
    case 'scheduler':
      return <SchedulerWidget {...props} />
    case 'resources':
      return <ResourcesWidget {...props} />
    case 'devices':
      return <DevicesWidget {...props} />
    case 'labels':
      return <LabelsWidget {...props} />
  }
}

const valueOf = ({ object, path }: WidgetProps): unknown => read(object, path)
const put = ({ object, path, onChange }: WidgetProps, value: unknown): void => onChange(write(object, path, value))

const QUANTITIES: Record<string, string[]> = { cpu: ['500m', '1', '2', '4', '8'], memory: ['512Mi', '1Gi', '2Gi', '4Gi', '8Gi', '16Gi'], storage: ['1Gi', '10Gi', '50Gi', '100Gi'] }

function TextWidget(props: WidgetProps) {
  const { field, choices, id, describedBy } = props
  const value = valueOf(props)
  const shown = value === undefined || value === null ? '' : String(value)
  const quantities = field.widget === 'quantity' ? QUANTITIES[props.path.split('.').at(-1) ?? ''] : undefined
  const suggestions = choices ?? field.suggestions ?? quantities
  if (!suggestions) return <Input id={id} aria-describedby={describedBy} value={shown} onChange={(event) => put(props, event.target.value)} />
  return (
    <Suggest
      id={id}
      aria-describedby={describedBy}
      value={shown}
      onChange={(next: string) => put(props, next)}
      options={suggestions.map((each) => ({ value: each }))}
      filterOption={(typed, option) => typed === shown && suggestions.includes(shown) ? true : String(option?.value ?? '').includes(typed)}
    />
  )
}

function NumberWidget(props: WidgetProps) {
  const value = valueOf(props)
  return (
    <InputNumber
      id={props.id}
      aria-describedby={props.describedBy}
      min={0}
      precision={0}
      style={{ width: '100%' }}
      value={value === undefined || value === null ? null : Number(value)}
      onChange={(next) => put(props, next ?? undefined)}
    />
  )
}

function SwitchWidget(props: WidgetProps) {
  return <Switch id={props.id} checked={valueOf(props) === true} onChange={(next) => put(props, next ? true : props.field.default === true ? false : undefined)} />
}

function SelectWidget(props: WidgetProps) {
  const { options = [], required } = props.field
  const value = valueOf(props) as string | undefined
  return (
    <Select
      id={props.id}
      aria-describedby={props.describedBy}
      allowClear={!required}
      value={value ?? null}
      onChange={(next: string | null) => put(props, next ?? undefined)}
      options={(props.choices ?? options).map((each) => ({ value: each, label: each === '' ? '-' : each }))}
      showSearch
    />
  )
}

function ClaimWidget(props: WidgetProps) {
  const w = useWords(words)
  const value = valueOf(props) as string | undefined
  return (
    <Select
      id={props.id}
      aria-describedby={props.describedBy}
      showSearch
      placeholder={w('claim')}
      notFoundContent={w('noClaims')}
      value={value ?? null}
      onChange={(next: string) => put(props, next)}
      options={(props.choices ?? []).map((each) => ({ value: each }))}
    />
  )
}

function CommandWidget(props: WidgetProps) {
  const w = useWords(words)
  const value = (valueOf(props) ?? []) as string[]
  // A word that holds newlines (a script after `sh -c`) is a textarea of its own.
  if (value.some((word) => String(word).includes('\n'))) {
    return (
      <div style={{ display: 'grid', gap: 4 }}>
        {value.map((word, index) => (
          <Input.TextArea key={index} autoSize={{ minRows: 1, maxRows: 12 }} className="mono" aria-label={`${index + 1}`} value={word} onChange={(event) => put(props, value.map((old, at) => (at === index ? event.target.value : old)))} />
        ))}
      </div>
    )
  }
  return (
    <Input.TextArea
      id={props.id}
      aria-describedby={props.describedBy}
      className="mono"
      autoSize={{ minRows: 1, maxRows: 10 }}
      placeholder={w('commandHelp')}
      value={value.join('\n')}
      onChange={(event) => put(props, event.target.value === '' ? undefined : event.target.value.split('\n'))}
      onBlur={() => put(props, value.filter((word) => word !== ''))}
    />
  )
}

interface Variable {
  name: string
  value?: string
  valueFrom?: unknown
}

function VariablesWidget(props: WidgetProps) {
  const w = useWords(words)
  const rows = (valueOf(props) ?? []) as Variable[]
  const change = (index: number, row: Variable): void => put(props, rows.map((old, at) => (at === index ? row : old)))
  return (
    <Rows
      id={props.id}
      count={rows.length}
      onAdd={() => put(props, [...rows, { name: '', value: '' }])}
      onRemove={(index) => put(props, rows.filter((_, at) => at !== index))}
      render={(index) => {
        const row = rows[index]!
        return (
          <>
            <Input aria-label={`${w('variableName')} ${index + 1}`} placeholder={w('variableName')} value={row.name} onChange={(event) => change(index, { ...row, name: event.target.value })} />
            <Input
              aria-label={`${w('variableValue')} ${index + 1}`}
              placeholder={w('variableValue')}
              disabled={row.valueFrom !== undefined}
              value={row.valueFrom === undefined ? (row.value ?? '') : 'valueFrom'}
              onChange={(event) => change(index, { ...row, value: event.target.value })}
            />
          </>
        )
      }}
    />
  )
}

function LabelsWidget(props: WidgetProps) {
  const w = useWords(words)
  const [rows, save] = usePairs((valueOf(props) ?? {}) as Record<string, string>, (next) => put(props, next))
  return (
    <Rows
      id={props.id}
      keys={rows.map(([key]) => key)}
      count={rows.length}
      onAdd={() => save([...rows, ['', '']])}
      onRemove={(index) => save(rows.filter((_, at) => at !== index))}
      render={(index) => {
        const [key, value] = rows[index]!
        return (
          <>
            <Input aria-label={`${w('labelKey')} ${index + 1}`} placeholder={w('labelKey')} value={key} onChange={(event) => save(rows.map((old, at) => (at === index ? [event.target.value, value] : old)))} />
            <Input aria-label={`${w('labelValue')} ${index + 1}`} placeholder={w('labelValue')} value={value} onChange={(event) => save(rows.map((old, at) => (at === index ? [key, event.target.value] : old)))} />
          </>
        )
      }}
    />
  )
}

/** Rows that can be added and removed. */
export function Rows({ id, keys = [], count, onAdd, onRemove, render }: { id?: string; /** of rows that make a map */ keys?: readonly string[]; count: number; onAdd: () => void; onRemove: (index: number) => void; render: (index: number) => React.ReactNode }) {
  const w = useWords(words)
  const twice = keys.find((key, at) => key !== '' && keys.indexOf(key) < at)
  return (
    <div style={{ display: 'grid', gap: 8, clear: 'both' }}>
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="row" style={{ flexWrap: 'nowrap' }}>
          {render(index)}
          <Button type="text" icon={<MinusCircleOutlined />} aria-label={`${w('remove')} ${index + 1}`} onClick={() => onRemove(index)} />
        </div>
      ))}
      {twice !== undefined && <div className="ant-form-item-explain-warning" role="status">{w('keyTwice', { key: twice })}</div>}
      <Button id={id} type="dashed" icon={<PlusOutlined />} onClick={onAdd} style={{ justifySelf: 'start' }}>
        {w('add')}
      </Button>
    </div>
  )
}
