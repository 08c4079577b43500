/** 创建 Job: the kind's form, filled from an existing job with ?from=NAME. */
import { Alert } from 'antd'
import { useQuery } from '@tanstack/react-query'
import { lazy, useMemo } from 'react'
import { useParams, useSearchParams } from 'react-router-dom'
import { CreatePage } from '../../forms/CreatePage'
import { formOf } from '../../forms/bundled'
import { write, type Value } from '../../forms/value'
import { useNamespace } from '../../frame/project'
import { Waiting } from '../../frame/Waiting'
import { useText, useWords } from '../../i18n'
import { getObject, JOB_KINDS, listObjects, messageOf, type Kind } from '../../kube'
import { words as uiWords } from '../../ui/words'
import { asNew } from '../../ui/yamlText'
import { boardsOf, jobOf, withBoard } from './board'
import { MENU } from './menu'
import { copyName, isKubeflow } from './reading'
import { words } from './words'

const NotFound = lazy(() => import('../../frame/NotFound'))

export default function CreateJob() {
  const { plural } = useParams()
  const kind = JOB_KINDS.find((each) => each.plural === plural)
  return kind ? <CreateOf key={plural} kind={kind} /> : <NotFound />
}

/** TensorFlowJob is another name of TensorFlowTrainingJob, with the same form. */
const formKind = (kind: Kind): string => (kind.kind === 'TensorFlowJob' ? 'TensorFlowTrainingJob' : kind.kind)

function CreateOf({ kind }: { kind: Kind }) {
  const w = useWords(words)
  const ui = useWords(uiWords)
  const t = useText()
  const namespace = useNamespace()
  const [params] = useSearchParams()
  const from = params.get('from')
  const form = useMemo(() => {
    const own = formOf(formKind(kind))
    return own && isKubeflow(kind) ? withBoard(own, formOf('PyTorchTrainingJob')) : own
  }, [kind])
  const source = useQuery({
    queryKey: ['clone', kind.plural, namespace, from],
    enabled: from !== null,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Value> => {
      const [object, others] = await Promise.all([getObject(kind, namespace, from!, signal), listObjects(kind, { namespace }, signal)])
      const copy = write(asNew({ ...object, apiVersion: kind.apiVersion, kind: kind.kind }) as unknown as Value, 'metadata.namespace', undefined)
      return write(copy, 'metadata.name', copyName(from!, new Set(others.map((each) => each.metadata.name))))
    },
  })
  if (!form) return <NotFound />
  if (from !== null && source.isPending) return <Waiting for={ui('loading', { what: from })} />
  const label = MENU.find((each) => each.kind === kind)?.label
  return (
    <>
      {from !== null && source.data && <Alert type="info" showIcon closable style={{ marginBottom: 12 }} message={w('cloneOf', { name: from })} />}
      {from !== null && source.error && <Alert type="warning" showIcon style={{ marginBottom: 12 }} message={w('cloneGone', { name: from, message: messageOf(source.error) })} />}
      <CreatePage
        key={from}
        kind={kind}
        namespace={namespace}
        form={form}
        title={`${w('createJob')} · ${label ? t(label) : kind.kind}`}
        list={{ label: w('jobs'), to: `/build/${namespace}/jobs` }}
        {...(isKubeflow(kind) ? { finish: jobOf, beside: (value: Value) => boardsOf(value, kind) } : {})}
        {...(source.data ? { initial: source.data } : {})}
      />
    </>
  )
}
