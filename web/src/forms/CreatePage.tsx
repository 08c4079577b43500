/** A whole create page: 导入, 预览 YAML (both ways), the form, 创建. */
import { App, Button, Select } from 'antd'
import { lazy, Suspense, useEffect, useRef, useState, type KeyboardEvent, type ReactNode } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../frame/crumbs'
import { useWords } from '../i18n'
import { createObject, findKind, useList, wholeMessageOf, type Kind, type KubeObject } from '../kube'
import { Dialog } from '../ui/popup/Dialog'
import { words } from '../ui/words'
import { asNew, toYaml } from '../ui/yaml/yamlText'
import { errorsByField } from '../why/fields'
import { exampleOf } from './bundled'
import { faultsOf } from './faults'
import { ObjectForm, Refusal, type ObjectFormProps, type Overrides } from './ObjectForm'
import type { FormSpec } from './spec'
import { initialValue, write, type Value } from './value'
import { words as formWords } from './words'

const CreateFromYaml = lazy(() => import('../ui/yaml/CreateFromYaml'))

export interface CreatePageProps {
  kind: Kind
  namespace: string
  form: FormSpec
  /** the list it leads back to */
  list: { label: string; to: string }
  title: string
  /** what the form begins with; default: the form's own defaults. A clone is given here. */
  initial?: Value
  overrides?: Overrides
  hidden?: readonly string[]
  /** last change before it is sent and before it is previewed */
  finish?: (value: Value) => Value
  /** further objects of the same form: made after it, belonging to it */
  beside?: (value: Value) => KubeObject[]
  children?: (value: Value, onChange: (value: Value) => void) => ReactNode
  onCreated?: (object: KubeObject) => void
  /** how it is created; default: in `namespace` */
  send?: (object: KubeObject) => Promise<KubeObject>
}

export function CreatePage(props: CreatePageProps) {
  const { kind, namespace, form, list, title, overrides, hidden, finish = (value) => value, beside = () => [], children } = props
  const w = useWords(words)
  const f = useWords(formWords)
  const navigate = useNavigate()
  const { notification } = App.useApp()
  const example = exampleOf(kind.kind)
  const [value, setValue] = useState<Value>(() => props.initial ?? initialValue(form, kind.apiVersion, kind.kind, example))
  const [errors, setErrors] = useState<Record<string, string[]>>({})
  const [strict, setStrict] = useState(false)
  const [busy, setBusy] = useState(false)
  const [preview, setPreview] = useState(false)
  const [importing, setImporting] = useState(false)
  const page = useRef<HTMLDivElement>(null)
  useCrumbs([list, { label: w('create') }])
  useEffect(() => page.current?.querySelector<HTMLElement>('fieldset input')?.focus(), [])

  const leave = (object: KubeObject): void => (props.onCreated ? props.onCreated(object) : navigate(list.to))
  const create = async (): Promise<void> => {
    setStrict(true)
    const finished = finish(value)
    if (Object.keys(faultsOf(form, { ...value, ...finished })).length > 0) {
      toFirstFault()
      return
    }
    setBusy(true)
    setErrors({})
    try {
      const made = await (props.send?.(finished as KubeObject) ?? createObject(kind, namespace, finished as KubeObject))
      notification.success({ message: w('created1', { kind: kind.kind, name: made.metadata.name }) })
      for (const object of beside(value)) {
        // The first is there and stays: what did not come with it is said, and can be made later.
        await createBeside(object, kind, made).catch((error: unknown) => notification.error({ duration: 0, message: w('createFailed', { kind: object.kind ?? '', name: object.metadata.name }), description: <Refusal messages={[wholeMessageOf(error)]} /> }))
      }
      leave(made)
    } catch (error) {
      setErrors(errorsByField(error))
      toFirstFault()
    } finally {
      setBusy(false)
    }
  }
  const toFirstFault = (): void =>
    void setTimeout(() => {
      const field = page.current?.querySelector<HTMLElement>('.ant-form-item-has-error :is(input, textarea, button)')
      if (field) field.focus()
      else page.current?.querySelector('[role=alert]')?.scrollIntoView({ block: 'nearest' })
    })
  const change: ObjectFormProps['onChange'] = (next) => {
    setValue(next)
    if (Object.keys(errors).length > 0) setErrors({})
  }
  // Enter in a line of text creates, as in any form, and Ctrl Enter anywhere in it; while Chinese is being typed it only ends the word.
  const onKeyDown = (event: KeyboardEvent): void => {
    const field = event.target as HTMLElement
    const line = field instanceof HTMLInputElement && ['text', 'number'].includes(field.type) && field.closest('fieldset') && !field.closest('.ant-select')
    const meant = line || (event.ctrlKey && field.closest('fieldset'))
    if (event.key === 'Enter' && meant && !event.nativeEvent.isComposing && !busy) void create()
  }
  return (
    <div style={{ maxWidth: 960 }} ref={page} onKeyDown={onKeyDown}>
      <div className="page-head">
        <h1>{title}</h1>
        <span className="grow" />
        <Button onClick={() => setImporting(true)}>{w('import', { kind: kind.kind })}</Button>
        <Button onClick={() => setPreview(true)}>{w('previewYaml')}</Button>
        <Button type="primary" loading={busy} title="Ctrl Enter" aria-keyshortcuts="Control+Enter" onClick={() => void create()}>
          {w('create')}
        </Button>
      </div>
      <ObjectForm form={form} value={value} onChange={change} namespace={namespace} example={example} errors={errors} strict={strict} {...(overrides ? { overrides } : {})} {...(hidden ? { hidden } : {})}>
        {children?.(value, change)}
      </ObjectForm>
      {importing && (
        <ImportDialog
          kind={kind}
          namespace={namespace}
          onClose={() => setImporting(false)}
          onChoose={(object) => {
            setImporting(false)
            change(write(asNew(object) as unknown as Value, 'metadata.namespace', undefined))
          }}
        />
      )}
      {preview && (
        <Suspense fallback={null}>
          <CreateFromYaml
            namespace={namespace}
            title={w('previewYaml')}
            initial={[finish(value), ...beside(value)].map((each) => toYaml(each)).join('---\n')}
            onClose={() => setPreview(false)}
            onCreated={(objects) => leave(objects[0]!)}
            extra={(objects) => (
              <Button
                disabled={objects.length !== 1 || objects[0]!.kind !== kind.kind}
                onClick={() => {
                  change(objects[0] as unknown as Value)
                  setPreview(false)
                }}
              >
                {f('takeOver')}
              </Button>
            )}
          />
        </Suspense>
      )}
    </div>
  )
}

/** Deleting the owner deletes it, too. */
async function createBeside(object: KubeObject, ownerKind: Kind, owner: KubeObject): Promise<void> {
  const kind = await findKind(object.apiVersion ?? '', object.kind ?? '')
  if (!kind) throw new Error(`${object.apiVersion} ${object.kind}`)
  const ownerReferences = [{ apiVersion: ownerKind.apiVersion, kind: ownerKind.kind, name: owner.metadata.name, uid: owner.metadata.uid ?? '' }]
  await createObject(kind, owner.metadata.namespace, { ...object, metadata: { ...object.metadata, ownerReferences } })
}

function ImportDialog({ kind, namespace, onClose, onChoose }: { kind: Kind; namespace: string; onClose: () => void; onChoose: (object: KubeObject) => void }) {
  const w = useWords(words)
  const listed = useList(kind, { namespace })
  return (
    <Dialog title={w('import', { kind: kind.kind })} onCancel={onClose} footer={null}>
      <p>{w('importHelp')}</p>
      <Select
        autoFocus
        showSearch
        style={{ width: '100%' }}
        loading={listed.loading}
        aria-label={w('import', { kind: kind.kind })}
        placeholder={w('searchName')}
        notFoundContent={w('empty')}
        options={listed.items.map((object) => ({ value: object.metadata.name }))}
        onChange={(name: string) => {
          const object = listed.items.find((each) => each.metadata.name === name)
          if (object) onChoose(object)
        }}
      />
    </Dialog>
  )
}
