/** Create from YAML: any kind, several documents; says what it will create; errors stand at their line or their document. */
import { Alert, App, Button, Tag } from 'antd'
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useNavigate } from 'react-router-dom'
import { useText, useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { useSaid } from '../../why/useSaid'
import { byMessage } from '../../why/why'
import { Dialog } from '../popup/Dialog'
import { createAll, isSame, plan, type Outcome, type Planned } from './createDocuments'
import { pathOf } from '../paths'
import { words } from '../words'
import { parseYaml, type YamlFault } from './yamlText'
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
  const said = useSaid()
  // What was created stays so while the rest of the text is mended.
  const rest = planned.filter((each) => !outcomes.some((outcome) => outcome.created && isSame(outcome.planned, each)))
  const refused = useMemo(() => outcomes.filter((outcome) => outcome.faults), [outcomes])
  const faults = useMemo<YamlFault[]>(() => refused.flatMap((outcome) => outcome.faults!), [refused])
  const change = (next: string): void => {
    setText(next)
    setOutcomes((before) => before.filter((outcome) => outcome.created)) // lines move, and what was refused may be mended
  }
  const faulty = parsed.faults.length > 0 || planned.some((each) => each.fault)

  const create = async (): Promise<void> => {
    setBusy(true)
    const before = outcomes.filter((outcome) => outcome.created)
    const results = await createAll(rest, (tried) => setOutcomes([...before, ...tried]))
    setBusy(false)
    const made = results.flatMap((result) => (result.created ? [{ ...result.created, kind: result.planned.kind!.kind }] : []))
    for (const object of made) notification.success({ message: w('created1', { kind: object.kind, name: object.metadata.name }) })
    if (made.length < results.length || made.length === 0) return
    const all = [...before.map((outcome) => ({ ...outcome.created!, kind: outcome.planned.kind!.kind })), ...made]
    onClose()
    if (onCreated) onCreated(all)
    else {
      const to = all.map((object) => pathOf(object, namespace)).find(Boolean)
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
              void Promise.all([...(event.target.files ?? [])].map((each) => each.text())).then((texts) => change(texts.join('\n---\n')))
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
      <YamlEditor value={text} onChange={change} faults={faults} label="YAML" height="52vh" autoFocus />
      <div style={{ marginTop: 8 }} role="status">
        {parsed.faults.slice(0, 3).map((fault) => (
          <Alert key={`${fault.line}:${fault.message}`} type="error" showIcon message={w('yamlError', { line: fault.line, message: said.message(fault.message) })} style={{ marginBottom: 4 }} />
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
            <Alert key={index} type="error" showIcon message={w('yamlError', { line: each.line, message: `${w('document', { number: index + 1 })} · ${w(each.fault.key, each.fault.parameters)}` })} style={{ marginTop: 4 }} />
          ) : null,
        )}
        {refused.map(({ planned: { kind, object }, faults: found }, index) => (
          <Alert
            key={index}
            type="error"
            showIcon
            message={w('createFailed', { kind: kind?.kind ?? '', name: object.metadata.name })}
            description={found!.map((fault) => (
              <Refused key={`${fault.line} ${fault.message}`} fault={fault} />
            ))}
            style={{ marginTop: 4 }}
          />
        ))}
      </div>
    </Dialog>
  )
}

/** At its line what the server refused and, where we know it, what to do. */
function Refused({ fault }: { fault: YamlFault }) {
  const w = useWords(words)
  const t = useText()
  const said = useSaid()
  const known = byMessage(fault.message, '')
  return (
    <div className="break" title={fault.message}>
      {w('yamlError', { line: fault.line, message: known ? t(known.cause, said.parameters(known.parameters)) : said.message(fault.message) })}
      {known && t(known.nextStep) && (
        <div>
          <strong>{w('nextStep')}:</strong> {t(known.nextStep, known.parameters)}
        </div>
      )}
    </div>
  )
}
