import { Button } from 'antd'
import { useMemo } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, useList } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/ResourceTable'
import { Share } from '../../ui/Share'
import { useResourceName } from '../../ui/useResourceName'
import { QueueTag } from './QueueTag'
import { formatPart, queueState, quotaParts } from './reading'
import { useToggle } from './useToggle'
import { words } from './words'

export default function Queues() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const queues = useList(KINDS.Queue)
  const toggle = useToggle()
  const resourceName = useResourceName()
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [
      { key: 'state', title: w('state'), sort: queueState, render: (queue) => <QueueTag queue={queue} /> },
      { key: 'priority', title: w('priority'), sort: (queue) => field(queue, 'spec.priority') ?? 0, render: (queue) => field(queue, 'spec.priority') ?? 0 },
      { key: 'preemptible', title: w('preemptible'), render: (queue) => w(field(queue, 'spec.preemptible') === false ? 'no' : 'yes') },
      {
        key: 'quota',
        title: w('quota'),
        render: (queue) => {
          const parts = quotaParts(queue)
          if (parts.length === 0) return <span className="quiet">{w('noQuota')}</span>
          return parts.map((part) => (
            <div key={part.resource}>
              <div className="quiet nowrap">{resourceName(part.resource)}</div>
              <Share label={resourceName(part.resource)} used={part.used} whole={part.whole} format={formatPart(part.resource)} />
            </div>
          ))
        },
      },
      { key: 'pods', title: w('pods'), render: (queue) => `${field(queue, 'status.pods.running') ?? 0} / ${field(queue, 'status.pods.pending') ?? 0}` },
      { key: 'groups', title: w('groups'), render: (queue) => field(queue, 'status.podGroups.total') ?? 0 },
      { key: 'maxDuration', title: w('maxDuration'), render: (queue) => field(queue, 'spec.maxDuration') ?? '-' },
    ],
    [w, resourceName],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'state', title: w('state'), value: queueState, label: (value) => w(value as keyof typeof words) },
      { key: 'preemptible', title: w('preemptible'), value: (queue) => w(field(queue, 'spec.preemptible') === false ? 'no' : 'yes') },
    ],
    [w],
  )
  return (
    <ResourceTable
      id="queues"
      listed={queues}
      columns={columns}
      filters={filters}
      linkTo={(queue) => pathOf(queue, namespace)}
      defaultSort={{ key: 'priority', order: 'descend' }}
      deleting={() => ({ consequences: w('deletes') })}
      rowActions={(queue) => [{ key: 'toggle', label: w(queueState(queue) === 'closed' ? 'openQueue' : 'closeQueue'), onClick: () => void toggle(queue) }]}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/queues/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
