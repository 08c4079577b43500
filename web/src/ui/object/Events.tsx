/** Table 事件: of one object (and what it owns), or of a whole project. */
import { CheckCircleOutlined, WarningFilled } from '@ant-design/icons'
import { Alert, Checkbox, Typography } from 'antd'
import { useMemo, useState } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import { field, KINDS, useList, type KubeObject } from '../../kube'
import { carried } from '../../why/why'
import { DataTable } from '../table/DataTable'
import { pathOf } from '../paths'
import { SaidMessage, SaidReason, useOriginal } from '../Said'
import { Moment } from '../Time'
import { useFailure } from '../useFailure'
import { words } from '../words'

export const eventTime = (event: KubeObject): string =>
  (field(event, 'series.lastObservedTime') as string | undefined) ?? (event.lastTimestamp as string | undefined) ?? (event.eventTime as string | undefined) ?? event.metadata.creationTimestamp ?? ''

const involved = (event: KubeObject): { kind?: string; name?: string; uid?: string; namespace?: string } => event.involvedObject ?? event.regarding ?? {}

/** The kubelet writes a node's name where its uid belongs, so nodes are asked for by name. */
const about = (object: KubeObject): string =>
  object.kind === 'Node' ? `involvedObject.kind=Node,involvedObject.name=${object.metadata.name}` : `involvedObject.uid=${object.metadata.uid}`

/** Live events about `objects` (by uid); without objects, all of the namespace. Newest first. */
export function useEvents(namespace: string | undefined, objects?: readonly KubeObject[]): { items: readonly KubeObject[]; loading: boolean; error: Error | undefined } {
  const single = objects?.length === 1 ? objects[0] : undefined
  const listed = useList(KINDS.Event, { namespace, fields: single && about(single) })
  const key = objects?.map((each) => each.metadata.uid).join()
  return useMemo(() => {
    const wanted = objects && new Set(objects.map((each) => each.metadata.uid))
    const items = wanted && !single ? listed.items.filter((event) => wanted.has(involved(event).uid)) : [...listed.items]
    items.sort((a, b) => (eventTime(a) < eventTime(b) ? 1 : -1))
    return { items, loading: listed.loading, error: listed.error }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key says all of `objects`
  }, [listed.items, listed.loading, listed.error, key])
}

export function Events({ namespace, objects, showObject = false, title = true, tools }: { namespace: string | undefined; objects?: readonly KubeObject[]; showObject?: boolean; title?: boolean; tools?: React.ReactNode }) {
  const w = useWords(words)
  const [warnings, setWarnings] = useState(false)
  const [original, originalBox] = useOriginal()
  const { items, loading, error } = useEvents(namespace, objects)
  const failure = useFailure()
  const shown = warnings ? items.filter((event) => event.type === 'Warning') : items
  return (
    <section>
      <div className="row" style={{ justifyContent: 'space-between' }}>
        {title ? <Typography.Title level={2} style={{ fontSize: 16, margin: '12px 0' }}>{w('events')}</Typography.Title> : <span />}
        <span className="row">
          {tools}
          <Checkbox checked={warnings} onChange={(event) => setWarnings(event.target.checked)}>
            {w('onlyWarnings')}
          </Checkbox>
          {originalBox}
        </span>
      </div>
      {error && <Alert type="warning" showIcon message={failure(error)} style={{ marginBottom: 8 }} />}
      <DataTable<KubeObject>
        rowKey={(event) => event.metadata.uid ?? event.metadata.name}
        loading={loading}
        dataSource={[...shown]}
        pagination={{ defaultPageSize: 10, hideOnSinglePage: true, showSizeChanger: true, showTotal: (total, [from, to]) => w('total', { from, to, total }) }}
        locale={{ emptyText: w('empty') }}
        columns={[
          {
            title: w('type'),
            render: (_, event) =>
              event.type === 'Warning' ? (
                <span className="nowrap"><WarningFilled style={{ color: 'var(--ant-color-warning, #b26a00)' }} /> {w('warning')}</span>
              ) : (
                <span className="nowrap"><CheckCircleOutlined /> {w('normal')}</span>
              ),
          },
          { title: w('firstSeen'), render: (_, event) => <Moment at={event.firstTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp} /> },
          { title: w('lastSeen'), render: (_, event) => <Moment at={eventTime(event)} /> },
          ...(showObject
            ? [
                {
                  title: w('object'),
                  render: (_: unknown, event: KubeObject) => {
                    const { kind, name, namespace: home } = involved(event)
                    const to = kind && name ? pathOf({ kind, metadata: { name, ...(home ? { namespace: home } : {}) } }, namespace ?? 'default') : undefined
                    const label = `${kind} ${name}`
                    return to ? <Link to={to}>{label}</Link> : label
                  },
                },
              ]
            : []),
          { title: w('reason'), render: (_, event) => <SaidReason reason={String(event.reason ?? '')} /> },
          {
            title: w('message'),
            render: (_, event) => {
              const count = Number(event.count ?? field(event, 'series.count') ?? 1)
              return <SaidMessage message={String(event.message ?? event.note ?? '')} causes={carried(event)} original={original} after={count > 1 ? ` (×${count})` : ''} />
            },
          },
        ]}
      />
    </section>
  )
}
