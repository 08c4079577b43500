/** Renders a form.yaml over an object. The object is the only state: what the form does not know is kept as it is. */
import { DeleteOutlined, PlusOutlined } from '@ant-design/icons'
import { Alert, Button, Form, Switch } from 'antd'
import { useMemo, useState, type ReactNode } from 'react'
import { useText, useWords } from '../i18n'
import { describe } from '../kinds/description'
import { useEachList, type Listed } from '../kube'
import { DropMenu } from '../ui/popup/DropMenu'
import { words } from '../ui/words'
import { useSaid } from '../why/useSaid'
import { byMessage } from '../why/why'
import { absentOf, faultsOf } from './faults'
import type { FieldSpec, FormSpec, SectionSpec } from './spec'
import { entries, escapeStep, isOn, isShown, newEntry, placeErrors, read, withDefaults, write, type Value } from './value'
import { namedBy, namedKinds } from './named'
import { Widget, type WidgetProps } from './widgets'
import { words as formWords } from './words'

/** Replaces the widget of a field: `{ 'spec.template.spec.containers.0.image': (props) => <ImagePicker …/> }`. */
export type Overrides = Record<string, (props: WidgetProps) => ReactNode>

export interface ObjectFormProps {
  form: FormSpec
  value: Value
  onChange: (value: Value) => void
  namespace: string
  example?: unknown
  /** messages by full path; '' for those about no field */
  errors?: Record<string, string[]>
  /** say what is missing (after 创建 was pressed) */
  strict?: boolean
  overrides?: Overrides
  /** fields that are not shown, by the path of form.yaml */
  hidden?: readonly string[]
  /** more sections, after the form's own */
  children?: ReactNode
}

/** The full paths of all fields that the form shows now. */
export const shownPaths = (form: FormSpec, value: unknown): string[] =>
  form.sections.flatMap((section) =>
    (section.each ? entries(value, section).map((entry) => `${entry.path}.`) : ['']).flatMap((root) => section.fields.map((field) => root + field.path)),
  )

export function ObjectForm({ form, value, onChange, namespace, example, errors = {}, strict = false, overrides = {}, hidden = [], children }: ObjectFormProps) {
  const w = useWords(words)
  const t = useText()
  const offered = useOffered(form, namespace)
  const placed = useMemo(() => placeErrors(errors, shownPaths(form, value)), [errors, form, value])
  const wrong = useMemo(() => faultsOf(form, value), [form, value])
  const f = useWords(formWords)
  const said = useSaid()

  const choicesOf = (field: FieldSpec): string[] | undefined => offered(field)?.items.map((each) => each.metadata.name)
  /** What is wrong first, then what the server said; the half-written is not called wrong before 创建 was pressed. */
  const toldOf = (field: FieldSpec, path: string): string[] => {
    const fault = wrong[path]
    const incomplete = fault === 'required' || fault === 'rowIncomplete'
    const own = !fault || (incomplete && !strict) ? [] : [fault === 'required' ? w('required', { label: t(field.label) }) : fault === 'notQuantity' || fault === 'badName' ? w(fault) : f(fault)]
    const refused = (placed[path] ?? []).map((message) => {
      const known = byMessage(message, '')
      return known ? [t(known.cause, said.parameters(known.parameters)), t(known.nextStep, known.parameters)].filter(Boolean).join('\n') : said.message(message)
    })
    return [...own, ...refused]
  }
  const warningOf = (field: FieldSpec, path: string): string | undefined => {
    const known = offered(field)
    const absent = describe(field.names)?.absent ?? formWords.claimAbsent
    if (!known || known.loading || known.error || field.widget === 'text') return undefined
    const [name] = absentOf(field, read(value, path), known.items.map((each) => each.metadata.name))
    return name === undefined ? undefined : t(absent, { name })
  }
  const renderField = (field: FieldSpec, root: string): ReactNode => {
    if (hidden.includes(field.path) || !isShown(field, value)) return null
    const path = root + field.path
    const id = `field-${path.replace(/[^\w-]/g, '_')}`
    const faults = toldOf(field, path)
    const warning = faults.length > 0 ? undefined : warningOf(field, path)
    const fault = faults.length > 0 ? faults.join(' · ') : warning
    const help = fault ?? (field.help ? t(field.help) : undefined)
    const told = help && <span id={`${id}-help`} className="break">{help}</span>
    const props: WidgetProps = { id, field, path, object: value, onChange, choices: choicesOf(field), describedBy: help ? `${id}-help` : undefined }
    return (
      <Form.Item
        key={path}
        label={t(field.label)}
        htmlFor={id}
        required={field.required ?? false}
        {...(fault ? { validateStatus: warning ? ('warning' as const) : ('error' as const) } : {})}
        {...(fault ? { help: told } : { extra: told })}
        style={{ marginBottom: 16 }}
      >
        {overrides[field.path]?.(props) ?? <Widget {...props} />}
      </Form.Item>
    )
  }
  const general = placed[''] ?? []
  return (
    <Form layout="vertical" component={false}>
      {general.length > 0 && <Alert type="error" showIcon message={w('otherErrors')} description={<Refusal messages={general} />} style={{ marginBottom: 16 }} />}
      {form.sections.map((section, index) =>
        section.each ? (
          <RepeatedSection key={index} section={section} value={value} onChange={onChange} example={example} renderField={renderField} />
        ) : section.switch ? (
          <SwitchedSection key={index} section={section} value={value} onChange={onChange} renderField={renderField} />
        ) : (
          <fieldset key={index} className="panel" style={{ margin: '0 0 16px' }}>
            <SectionTitle>{t(section.title)}</SectionTitle>
            <div className="form-grid">{section.fields.map((field) => renderField(field, ''))}</div>
          </fieldset>
        ),
      )}
      {children}
    </Form>
  )
}

/** What there is of the kinds that fields name. Those that live in one namespace are offered from anywhere. */
function useOffered(form: FormSpec, namespace: string): (field: FieldSpec) => Listed | undefined {
  const kinds = useMemo(() => namedKinds(form), [form])
  const lists = useEachList(kinds.map((kind) => ({ kind, namespace: describe(kind.kind)?.home ? undefined : namespace })))
  return (field) => lists[kinds.findIndex((kind) => kind.kind === namedBy(field))]
}

/** What the server refused and, where we know it, what to do. */
export function Refusal({ messages }: { messages: readonly string[] }) {
  const w = useWords(words)
  const t = useText()
  const said = useSaid()
  const found = messages.map((message) => ({ message, why: byMessage(message, '') }))
  const known = found.find(({ why }) => why !== undefined)?.why
  return (
    <>
      {found.map(({ message, why }) => (
        <div key={message} className="break" title={message}>{why ? t(why.cause, said.parameters(why.parameters)) : said.message(message)}</div>
      ))}
      {known && t(known.nextStep) && (
        <div>
          <strong>{w('nextStep')}:</strong> {t(known.nextStep, known.parameters)}
        </div>
      )}
    </>
  )
}

export function SectionTitle({ children, extra }: { children: ReactNode; extra?: ReactNode }) {
  return (
    <legend className="row" style={{ float: 'left', width: '100%', marginBottom: 12, padding: 0, border: 0, fontSize: 16, fontWeight: 600 }}>
      <span className="grow">{children}</span>
      {extra}
    </legend>
  )
}

/** 添加运行策略 and the like: its fields appear when it is switched on, and what they said goes when it is switched off. */
function SwitchedSection({ section, value, onChange, renderField }: Omit<RepeatedProps, 'example'>) {
  const t = useText()
  const [opened, setOpened] = useState(false)
  const on = opened || isOn(section, value)
  const turn = (next: boolean): void => {
    setOpened(next)
    onChange(next ? withDefaults(value, section) : write(value, section.at!, undefined))
  }
  return (
    <fieldset className="panel" style={{ margin: '0 0 16px' }}>
      <label className="row" style={{ width: 'fit-content' }}>
        <Switch checked={on} onChange={turn} aria-label={t(section.switch)} /> {t(section.switch)}
      </label>
      {section.help && <div className="quiet">{t(section.help)}</div>}
      {on && section.fields.length > 0 && (
        <div className="form-grid" style={{ marginTop: 16 }}>
          {section.fields.map((field) => renderField(field, ''))}
        </div>
      )}
    </fieldset>
  )
}

interface RepeatedProps {
  section: SectionSpec
  value: Value
  onChange: (value: Value) => void
  example: unknown
  renderField: (field: FieldSpec, root: string) => ReactNode
}

function RepeatedSection({ section, value, onChange, example, renderField }: RepeatedProps) {
  const w = useWords(words)
  const t = useText()
  const present = entries(value, section)
  const free = section.keys?.filter((key) => !present.some((entry) => entry.key === key))
  const add = (key?: string): void => onChange(write(value, `${section.each}.${key === undefined ? present.length : escapeStep(key)}`, newEntry(section, example, present.map((entry) => read(value, `${entry.path}.type`)))))
  const remove = (key: string): void => {
    const now = read(value, section.each!)
    onChange(write(value, section.each!, Array.isArray(now) ? now.filter((_, index) => String(index) !== key) : Object.fromEntries(Object.entries(now as object).filter(([each]) => each !== key))))
  }
  const titleOf = (entry: { key: string; path: string }): string => {
    const own = section.keys ? entry.key : (read(value, `${entry.path}.type`) ?? read(value, `${entry.path}.name`))
    return typeof own === 'string' && own ? own : `${t(section.title)} ${Number(entry.key) + 1}`
  }
  return (
    <>
      {present.map((entry) => (
        <fieldset key={entry.key} className="panel" style={{ margin: '0 0 16px' }}>
          <SectionTitle extra={<Button type="text" danger icon={<DeleteOutlined />} aria-label={`${w('remove')} ${titleOf(entry)}`} onClick={() => remove(entry.key)} />}>{titleOf(entry)}</SectionTitle>
          <div className="form-grid">{section.fields.map((field) => renderField(field, `${entry.path}.`))}</div>
        </fieldset>
      ))}
      <div style={{ marginBottom: 16 }}>
        {free ? (
          <DropMenu disabled={free.length === 0} menu={{ items: free.map((key) => ({ key, label: key, onClick: () => add(key) })) }}>
            <Button icon={<PlusOutlined />}>{section.add ? t(section.add) : w('addType')}</Button>
          </DropMenu>
        ) : (
          <Button icon={<PlusOutlined />} onClick={() => add()}>
            {section.add ? t(section.add) : w('addType')}
          </Button>
        )}
      </div>
    </>
  )
}
