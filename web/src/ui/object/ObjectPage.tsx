/** The frame of an object's page: loads it live, says when it is not there, and gives it title, state, actions and tabs. */
import { Alert, Button, Result, type TabsProps } from 'antd'
import { lazy, Suspense, useState, type ReactNode } from 'react'
import { Link } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { Waiting } from '../../frame/Waiting'
import { useText, useWords } from '../../i18n'
import { KubeError, type Kind, type KubeObject, type Observed } from '../../kube'
import { PageTabs } from './PageTabs'
import { StateTag } from '../StateTag'
import { useDelete, type Deleting } from '../useDelete'
import { useFailure } from '../useFailure'
import { words } from '../words'

const YamlPanel = lazy(() => import('../yaml/YamlPanel'))

export interface ObjectPageProps {
  kind: Kind
  name: string
  observed: Observed
  /** the list it belongs to */
  list: { label: string; to: string }
  /** tabs of the page; YAML is added at the end. The chosen tab is part of the address (?tab=). */
  tabs: (object: KubeObject) => NonNullable<TabsProps['items']>
  /** buttons beside the title */
  actions?: (object: KubeObject) => ReactNode
  /** between title and tabs: WhyBox */
  above?: (object: KubeObject) => ReactNode
  deleting?: (object: KubeObject) => Deleting
  onDeleted?: () => void
  stateTag?: boolean
}

export function ObjectPage({ kind, name, observed, list, tabs, actions, above, deleting, onDeleted, stateTag = true }: ObjectPageProps) {
  const w = useWords(words)
  const t = useText()
  const remove = useDelete()
  const failure = useFailure()
  const [leaving, setLeaving] = useState(false)
  useCrumbs([list, { label: name }])
  const { object, loading, error, deleted } = observed
  if (loading && !object) {
    return (
      <Waiting for={w('loading', { what: name })} />
    )
  }
  if (!object) {
    const failed = error && !(error instanceof KubeError && error.notFound)
    return (
      <Result
        status={failed ? 'warning' : 'info'}
        title={<h1 className="result-title">{failed ? w('failedTitle') : w('goneTitle', { kind: t(kind.words), name })}</h1>}
        subTitle={failed ? failure(error) : w('goneHelp')}
        extra={<Link to={list.to}>{w('back')}</Link>}
      />
    )
  }
  const items = [
    ...tabs(object),
    {
      key: 'yaml',
      label: w('yaml'),
      children: (
        <Suspense fallback={<Waiting for={w('loading', { what: 'YAML' })} />}>
          <YamlPanel object={object} />
        </Suspense>
      ),
    },
  ]
  return (
    <>
      <div className="page-head">
        <h1>{name}</h1>
        {stateTag && <span role="status"><StateTag object={object} reason={false} /></span>}
        <span className="grow" />
        {actions?.(object)}
        {deleting && !deleted && (
          <Button
            danger
            onClick={() =>
              remove([object], {
                ...deleting(object),
                onDeleted: () => {
                  setLeaving(true)
                  onDeleted?.()
                },
              })
            }
          >
            {w('delete')}
          </Button>
        )}
      </div>
      {deleted && !leaving && <Alert type="info" showIcon message={w('deletedBanner')} action={<Link to={list.to}>{w('back')}</Link>} style={{ marginBottom: 12 }} />}
      {above?.(object)}
      <div className="panel">
        <PageTabs items={items} />
      </div>
    </>
  )
}
