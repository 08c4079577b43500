import { App, Button, Form, Input, Radio } from 'antd'
import { useState } from 'react'
import { useNavigate } from 'react-router-dom'
import { Rows } from '../../forms/widgets'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { createObject, errorsByField, KINDS, type KubeObject } from '../../kube'
import { words as common } from '../../ui/words'
import { FIELDS, keyFault, SECRET_FIELDS, secretOf, TEMPLATES, type TemplateName } from './templates'
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
  const [errors, setErrors] = useState<Record<string, string[]>>({})
  const [busy, setBusy] = useState(false)
  const list = { label: w('title'), to: `/build/${namespace}/secrets` }
  useCrumbs([list, { label: c('create') }])

  const create = async (): Promise<void> => {
    const fault = template === 'custom' ? keyFault(rows.map((row) => row.key)) : undefined
    const found: Record<string, string[]> = {}
    if (!name) found['metadata.name'] = [c('required', { label: w('name') })]
    if (fault) found.data = [w(fault.fault, { key: fault.key })]
    setErrors(found)
    if (Object.keys(found).length > 0) return
    const body = template === 'custom' ? { type: 'Opaque', stringData: Object.fromEntries(rows.map((row) => [row.key, row.value])) } : secretOf(template, values)
    setBusy(true)
    try {
      await createObject(KINDS.Secret, namespace, { apiVersion: 'v1', kind: 'Secret', metadata: { name }, ...body } as KubeObject)
      notification.success({ message: c('created1', { kind: 'Secret', name }) })
      navigate(list.to)
    } catch (error) {
      setErrors(errorsByField(error))
    } finally {
      setBusy(false)
    }
  }
  const item = (path: string) => (errors[path] ? { validateStatus: 'error' as const, help: errors[path].join(' · ') } : {})
  const rest = Object.entries(errors).filter(([path]) => path !== 'metadata.name' && path !== 'data').flatMap(([, messages]) => messages)
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
                <Form.Item key={field} label={LABELS[field] ? w(LABELS[field]) : field} htmlFor={props.id}>
                  {SECRET_FIELDS.has(field) ? <Input.Password autoComplete="off" {...props} /> : field === 'publicKey' ? <Input.TextArea autoSize={{ minRows: 2 }} {...props} /> : <Input {...props} />}
                </Form.Item>
              )
            })
          )}
          {rest.length > 0 && <div role="alert" className="break">{rest.join('\n')}</div>}
        </Form>
      </div>
    </div>
  )
}
