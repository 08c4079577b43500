import { Alert, App, Button, Form, Input, Radio } from 'antd'
import { useState } from 'react'
import { useNavigate } from 'react-router-dom'
import { Refusal } from '../../forms/ObjectForm'
import { Rows } from '../../forms/widgets'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { createObject, KINDS, type KubeObject } from '../../kube'
import { words as common } from '../../ui/words'
import { errorsByField } from '../../why/fields'
import { useSaid } from '../../why/useSaid'
import { FIELDS, keyFault, PURPOSE, PURPOSES, SECRET_FIELDS, secretOf, TEMPLATES, type TemplateName } from './templates'
import { words } from './words'

const LABELS: Record<string, keyof typeof words> = { server: 'server', user: 'user', password: 'password', publicKey: 'publicKey', endpoint: 'endpoint' }

export default function CreateSecret() {
  const w = useWords(words)
  const c = useWords(common)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const { notification } = App.useApp()
  const [name, setName] = useState('')
  const [template, setTemplate] = useState<TemplateName>('custom')
  const [values, setValues] = useState<Record<string, string>>({})
  const [rows, setRows] = useState<{ key: string; value: string }[]>([{ key: '', value: '' }])
  const [labels, setLabels] = useState<{ key: string; value: string }[]>([])
  const said = useSaid()
  const [errors, setErrors] = useState<Record<string, string[]>>({})
  const [busy, setBusy] = useState(false)
  const list = { label: w('title'), to: `/build/${namespace}/secrets` }
  useCrumbs([list, { label: c('create') }])

  const labelOf = (field: string): string => (LABELS[field] ? w(LABELS[field]) : field)
  const create = async (): Promise<void> => {
    const fault = template === 'custom' ? keyFault(rows.map((row) => row.key)) : undefined
    const found: Record<string, string[]> = {}
    if (!name) found['metadata.name'] = [c('required', { label: w('name') })]
    else if (!/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(name)) found['metadata.name'] = [c('badName')]
    if (labels.some((label) => label.key === '')) found['metadata.labels'] = [w('keyMissing')]
    for (const field of template === 'custom' ? [] : FIELDS[template]) if (!values[field]?.trim()) found[field] = [c('required', { label: labelOf(field) })]
    if (fault) found.data = [w(fault.fault, { key: fault.key })]
    setErrors(found)
    if (Object.keys(found).length > 0) {
      setTimeout(() => document.querySelector<HTMLElement>('.ant-form-item-has-error :is(input, textarea)')?.focus())
      return
    }
    const marked = { ...Object.fromEntries(labels.map((label) => [label.key, label.value])), [PURPOSE]: PURPOSES[template] }
    const body = template === 'custom' ? { type: 'Opaque', stringData: Object.fromEntries(rows.map((row) => [row.key, row.value])) } : secretOf(template, values)
    setBusy(true)
    try {
      await createObject(KINDS.Secret, namespace, { apiVersion: 'v1', kind: 'Secret', metadata: { name, labels: marked }, ...body } as KubeObject)
      notification.success({ message: c('created1', { kind: 'Secret', name }) })
      navigate(list.to)
    } catch (error) {
      setErrors(errorsByField(error))
    } finally {
      setBusy(false)
    }
  }
  const item = (path: string) => (errors[path] ? { validateStatus: 'error' as const, help: errors[path].map(said.message).join(' · ') } : {})
  const placed = new Set(['metadata.name', 'metadata.labels', 'data', ...(template === 'custom' ? [] : FIELDS[template])])
  const rest = Object.entries(errors).filter(([path]) => !placed.has(path) && !path.startsWith('data.')).flatMap(([, messages]) => messages)
  return (
    <div style={{ maxWidth: 760 }}>
      <div className="page-head">
        <h1>{w('create')}</h1>
        <span className="grow" />
        <Button type="primary" loading={busy} onClick={() => void create()}>
          {c('create')}
        </Button>
      </div>
      <div className="panel">
        <Form layout="vertical" component={false}>
          <Form.Item label={w('name')} htmlFor="secret-name" required {...item('metadata.name')}>
            <Input id="secret-name" value={name} onChange={(event) => setName(event.target.value)} />
          </Form.Item>
          <Form.Item label={w('template')}>
            <Radio.Group value={template} onChange={(event) => setTemplate(event.target.value as TemplateName)} options={TEMPLATES.map((value) => ({ value, label: w(value) }))} />
          </Form.Item>
          <Form.Item label={w('labels')} {...item('metadata.labels')}>
            <Rows
              count={labels.length}
              onAdd={() => setLabels([...labels, { key: '', value: '' }])}
              onRemove={(index) => setLabels(labels.filter((_, at) => at !== index))}
              render={(index) => {
                const change = (next: object): void => setLabels(labels.map((old, at) => (at === index ? { ...old, ...next } : old)))
                return (
                  <>
                    <Input aria-label={`${w('labels')} ${w('key')} ${index + 1}`} placeholder={w('key')} value={labels[index]!.key} onChange={(event) => change({ key: event.target.value })} />
                    <Input aria-label={`${w('labels')} ${w('value')} ${index + 1}`} placeholder={w('value')} value={labels[index]!.value} onChange={(event) => change({ value: event.target.value })} />
                  </>
                )
              }}
            />
          </Form.Item>
          {template === 'custom' ? (
            <Form.Item label={w('data')} {...item('data')}>
              <Rows
                count={rows.length}
                onAdd={() => setRows([...rows, { key: '', value: '' }])}
                onRemove={(index) => setRows(rows.filter((_, at) => at !== index))}
                render={(index) => {
                  const row = rows[index]!
                  const change = (next: Partial<typeof row>): void => setRows(rows.map((old, at) => (at === index ? { ...old, ...next } : old)))
                  return (
                    <>
                      <Input style={{ flex: 1 }} aria-label={`${w('key')} ${index + 1}`} placeholder={w('key')} value={row.key} onChange={(event) => change({ key: event.target.value })} />
                      <Input.TextArea style={{ flex: 2 }} autoSize={{ minRows: 1, maxRows: 10 }} aria-label={`${w('value')} ${index + 1}`} placeholder={w('value')} value={row.value} onChange={(event) => change({ value: event.target.value })} />
                    </>
                  )
                }}
              />
            </Form.Item>
          ) : (
            FIELDS[template].map((field) => {
              const props = { id: `secret-${field}`, value: values[field] ?? '', onChange: (event: { target: { value: string } }) => setValues({ ...values, [field]: event.target.value }) }
              return (
                <Form.Item key={field} label={labelOf(field)} htmlFor={props.id} required {...item(field)}>
                  {SECRET_FIELDS.has(field) ? <Input.Password autoComplete="off" {...props} /> : field === 'publicKey' ? <Input.TextArea autoSize={{ minRows: 2 }} {...props} /> : <Input {...props} />}
                </Form.Item>
              )
            })
          )}
          {rest.length > 0 && <Alert type="error" showIcon message={c('otherErrors')} description={<Refusal messages={rest} />} />}
        </Form>
      </div>
    </div>
  )
}
