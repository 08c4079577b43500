/** One widget for each word of form.yaml. A widget is given its value and says what it becomes; it knows no form. */
import { MinusCircleOutlined, PlusOutlined } from '@ant-design/icons'
import { AutoComplete, Button, Input, InputNumber, Select, Switch } from 'antd'
import { useWords } from '../i18n'
import { words } from '../ui/words'
import type { FieldSpec } from './spec'
import { DevicesWidget } from './DevicesWidget'
import { ResourcesWidget } from './ResourcesWidget'
import { SchedulerWidget } from './SchedulerWidget'
import { read, write, type Value } from './value'

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
    <AutoComplete
      id={id}
      aria-describedby={describedBy}
      value={shown}
      onChange={(next: string) => put(props, next)}
      // It is a search field to the browser, which empties those on Escape; people only want to close the suggestions.
      onKeyDown={(event) => event.key === 'Escape' && event.preventDefault()}
      options={suggestions.map((each) => ({ value: each }))}
      filterOption={(typed, option) => typed === shown && suggestions.includes(shown) ? true : (option?.value ?? '').includes(typed)}
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

interface Volume {
  name: string
  persistentVolumeClaim?: { claimName: string }
}

interface Mount {
  name: string
  mountPath: string
}

/** Claims and where they are mounted in the first container; volumes of other types are kept as they are. */
function VolumesWidget(props: WidgetProps) {
  const w = useWords(words)
  const { path, object, onChange } = props
  const mountsPath = path.replace(/volumes$/, 'containers.0.volumeMounts')
  const volumes = (read(object, path) ?? []) as Volume[]
  const mounts = (read(object, mountsPath) ?? []) as Mount[]
  const save = (nextVolumes: Volume[], nextMounts: Mount[]): void => onChange(write(write(object, path, nextVolumes), mountsPath, nextMounts))
  const fresh = (): string => {
    for (let number = volumes.length; ; number++) {
      const name = number === 0 ? 'data' : `data-${number}`
      if (!volumes.some((volume) => volume.name === name)) return name
    }
  }
  return (
    <Rows
      id={props.id}
      count={volumes.length}
      onAdd={() => {
        const name = fresh()
        save([...volumes, { name, persistentVolumeClaim: { claimName: '' } }], [...mounts, { name, mountPath: volumes.length === 0 ? '/t9k/mnt' : '' }])
      }}
      onRemove={(index) => save(volumes.filter((_, at) => at !== index), mounts.filter((mount) => mount.name !== volumes[index]!.name))}
      render={(index) => {
        const volume = volumes[index]!
        const mount = mounts.find((each) => each.name === volume.name)
        if (!volume.persistentVolumeClaim) return <span className="grow">{w('otherVolume', { name: volume.name })}</span>
        return (
          <>
            <AutoComplete
              style={{ flex: 1 }}
              aria-label={`${w('claim')} ${index + 1}`}
              placeholder={w('claim')}
              value={volume.persistentVolumeClaim.claimName}
              options={(props.choices ?? []).map((value) => ({ value }))}
              onChange={(claimName: string) => save(volumes.map((old, at) => (at === index ? { ...volume, persistentVolumeClaim: { ...volume.persistentVolumeClaim, claimName } } : old)), mounts)}
            />
            <Input
              style={{ flex: 1 }}
              aria-label={`${w('mountPath')} ${index + 1}`}
              placeholder={w('mountPath')}
              value={mount?.mountPath ?? ''}
              onChange={(event) => {
                const next = { ...(mount ?? { name: volume.name }), mountPath: event.target.value }
                save(volumes, mount ? mounts.map((old) => (old === mount ? next : old)) : [...mounts, next])
              }}
            />
          </>
        )
      }}
    />
  )
}

function LabelsWidget(props: WidgetProps) {
  const w = useWords(words)
  const rows = Object.entries((valueOf(props) ?? {}) as Record<string, string>)
  const save = (next: [string, string][]): void => put(props, Object.fromEntries(next))
  return (
    <Rows
      id={props.id}
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
export function Rows({ id, count, onAdd, onRemove, render }: { id?: string; count: number; onAdd: () => void; onRemove: (index: number) => void; render: (index: number) => React.ReactNode }) {
  const w = useWords(words)
  return (
    <div style={{ display: 'grid', gap: 8, clear: 'both' }}>
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="row" style={{ flexWrap: 'nowrap' }}>
          {render(index)}
          <Button type="text" icon={<MinusCircleOutlined />} aria-label={`${w('remove')} ${index + 1}`} onClick={() => onRemove(index)} />
        </div>
      ))}
      <Button id={id} type="dashed" icon={<PlusOutlined />} onClick={onAdd} style={{ justifySelf: 'start' }}>
        {w('add')}
      </Button>
    </div>
  )
}
