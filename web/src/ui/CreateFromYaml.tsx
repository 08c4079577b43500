/** Create from YAML: any kind, several documents; says what it will create; errors stand at their line or their document. */
import { Alert, App, Button, Tag } from 'antd'
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useNavigate } from 'react-router-dom'
import { useWords } from '../i18n'
import type { KubeObject } from '../kube'
import { Dialog } from './Dialog'
import { createAll, plan, type Outcome, type Planned } from './createDocuments'
import { pathOf } from './paths'
import { words } from './words'
import { parseYaml } from './yamlText'
import { YamlEditor } from './YamlEditor'

export interface CreateFromYamlProps {
  namespace: string
  onClose: () => void
  initial?: string
  title?: string
  /** Called when everything was created; default: goes to the page of the first object. */
  onCreated?: (objects: KubeObject[]) => void
  /** More buttons, given what the text says now: a form's "take over". */
  extra?: (objects: readonly KubeObject[]) => ReactNode
}

export default function CreateFromYaml({ namespace, onClose, initial = '', title, onCreated, extra }: CreateFromYamlProps) {
  const w = useWords(words)
  const navigate = useNavigate()
  const { notification } = App.useApp()
  const [text, setText] = useState(initial)
  const [planned, setPlanned] = useState<Planned[]>([])
  const [outcomes, setOutcomes] = useState<Outcome[]>([])
  const [busy, setBusy] = useState(false)
  const file = useRef<HTMLInputElement>(null)
  const parsed = useMemo(() => parseYaml(text), [text])
  useEffect(() => {
    let current = true
    void plan(parsed, namespace).then((made) => current && setPlanned(made))
    return () => {
      current = false
    }
  }, [parsed, namespace])
  const done = new Set(outcomes.filter((outcome) => outcome.created).map((outcome) => outcome.planned.object))
  const rest = planned.filter((each) => !done.has(each.object))
  const faulty = parsed.faults.length > 0 || planned.some((each) => each.fault)

  const create = async (): Promise<void> => {
    setBusy(true)
    const results = await createAll(rest, setOutcomes)
    setBusy(false)
    const made = results.flatMap((result) => (result.created ? [{ ...result.created, kind: result.planned.kind!.kind }] : []))
    for (const object of made) notification.success({ message: w('created1', { kind: object.kind, name: object.metadata.name }) })
    if (made.length < results.length || made.length === 0) return
    onClose()
    if (onCreated) onCreated(made)
    else {
      const to = made.map((object) => pathOf(object, namespace)).find(Boolean)
      if (to) navigate(to)
    }
  }

  return (
    <Dialog
      title={title ?? w('fromYaml')}
      width={960}
      onCancel={onClose}
      maskClosable={false}
      style={{ top: 40 }}
      footer={
        <div className="row">
          <input
            ref={file}
            type="file"
            accept=".yaml,.yml,.json"
            multiple
            hidden
            onChange={(event) => {
              void Promise.all([...(event.target.files ?? [])].map((each) => each.text())).then((texts) => setText(texts.join('\n---\n')))
              event.target.value = ''
            }}
          />
          <Button onClick={() => file.current?.click()}>{w('loadFile')}</Button>
          {extra?.(parsed.objects)}
          <span className="grow" />
          <Button onClick={onClose}>{w('cancel')}</Button>
          <Button type="primary" loading={busy} disabled={rest.length === 0 || faulty} onClick={() => void create()}>
            {w('create')}
          </Button>
        </div>
      }
    >
      <YamlEditor value={text} onChange={setText} label="YAML" height="52vh" autoFocus />
      <div style={{ marginTop: 8 }} role="status">
        {parsed.faults.slice(0, 3).map((fault) => (
          <Alert key={`${fault.line}:${fault.message}`} type="error" showIcon message={w('yamlError', { line: fault.line, message: fault.message })} style={{ marginBottom: 4 }} />
        ))}
        {planned.length === 0 && parsed.faults.length === 0 && <span className="quiet">{w('nothingToCreate')}</span>}
        {planned.length > 0 && !faulty && (
          <span>
            {w('willCreate')}
            {rest.map((each, index) => (
              <Tag key={index}>
                {each.kind?.kind} {each.object.metadata.name}
                {each.namespace && each.namespace !== namespace ? ` (${each.namespace})` : ''}
              </Tag>
            ))}
          </span>
        )}
        {planned.map((each, index) =>
          each.fault ? (
            <Alert key={index} type="error" showIcon message={`${w('yamlError', { line: each.line, message: w('document', { number: index + 1 }) })}: ${w(each.fault.key, each.fault.parameters)}`} style={{ marginTop: 4 }} />
          ) : null,
        )}
        {outcomes.map((outcome, index) =>
          outcome.error ? (
            <Alert
              key={index}
              type="error"
              showIcon
              message={w('createFailed', { kind: outcome.planned.kind?.kind ?? '', name: outcome.planned.object.metadata.name })}
              description={<span className="break">{outcome.error}</span>}
              style={{ marginTop: 4 }}
            />
          ) : null,
        )}
      </div>
    </Dialog>
  )
}
