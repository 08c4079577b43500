import { Button, Typography } from 'antd'
import { useMemo } from 'react'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, useList, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/Conditions'
import { DataTable } from '../../ui/DataTable'
import { Events } from '../../ui/Events'
import { ObjectPage } from '../../ui/ObjectPage'
import { Share } from '../../ui/Share'
import { useResourceName } from '../../ui/useResourceName'
import { StateTag } from '../../ui/StateTag'
import { Summary } from '../../ui/Summary'
import { QueueTag } from './QueueTag'
import { formatPart, HOME, queueState, quotaParts, saying, selectorText } from './reading'
import { useToggle } from './useToggle'
import { words } from './words'

export default function Queue() {
  const w = useWords(words)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const navigate = useNavigate()
  const observed = useObject(KINDS.Queue, HOME, name)
  const toggle = useToggle()
  const list = { label: w('title'), to: `/build/${namespace}/queues` }
  return (
    <ObjectPage
      kind={KINDS.Queue}
      name={name}
      observed={observed}
      list={list}
      stateTag={false}
      actions={(queue) => <Button onClick={() => void toggle(queue)}>{w(queueState(queue) === 'closed' ? 'openQueue' : 'closeQueue')}</Button>}
      deleting={() => ({ consequences: w('deletes') })}
      onDeleted={() => navigate(list.to)}
      tabs={(queue) => [{ key: 'queue', label: w('queue'), children: <About queue={queue} /> }]}
    />
  )
}

function About({ queue }: { queue: KubeObject }) {
  const w = useWords(words)
  const resourceName = useResourceName()
  const who = selectorText(field(queue, 'spec.namespaceSelector'))
  const where = selectorText(field(queue, 'spec.nodeSelector'))
  return (
    <>
      <Summary
        object={queue}
        state={false}
        entries={[
          { key: 'state', label: w('state'), value: <QueueTag queue={queue} /> },
          { key: 'priority', label: w('priority'), value: field(queue, 'spec.priority') ?? 0 },
          { key: 'preemptible', label: w('preemptible'), value: w(field(queue, 'spec.preemptible') === false ? 'no' : 'yes') },
          { key: 'maxDuration', label: w('maxDuration'), value: field(queue, 'spec.maxDuration') ?? '-' },
          { key: 'namespaces', label: w('namespaces'), value: who === undefined ? w('nobody') : who || w('everybody') },
          { key: 'nodes', label: w('nodes'), value: where || w('allNodes') },
          { key: 'pods', label: w('pods'), value: `${field(queue, 'status.pods.running') ?? 0} / ${field(queue, 'status.pods.pending') ?? 0}` },
          {
            key: 'quota',
            label: w('quota'),
            wide: true,
            value: quotaParts(queue).length === 0 ? w('noQuota') : quotaParts(queue).map((part) => (
              <div key={part.resource}>
                <span className="quiet">{resourceName(part.resource)}</span> <Share label={resourceName(part.resource)} used={part.used} whole={part.whole} format={formatPart(part.resource)} />
              </div>
            )),
          },
        ]}
      />
      <Work queue={queue.metadata.name} />
      <Conditions object={queue} />
      <Events namespace={HOME} objects={[queue]} />
    </>
  )
}

/** Pod groups of all projects that stand in this queue. */
function Work({ queue }: { queue: string }) {
  const w = useWords(words)
  const groups = useList(KINDS.PodGroup)
  const own = useMemo(() => groups.items.filter((group) => (field(group, 'spec.queue') ?? 'default') === queue), [groups.items, queue])
  return (
    <section>
      <Typography.Title level={2} style={{ fontSize: 16, margin: '16px 0 8px' }}>{w('work')}</Typography.Title>
      <DataTable<KubeObject>
        rowKey={(group) => group.metadata.uid ?? group.metadata.name}
        dataSource={own}
        locale={{ emptyText: w('nothing') }}
        pagination={{ hideOnSinglePage: true }}
        columns={[
          { title: w('name'), render: (_, group) => group.metadata.name },
          { title: w('namespace'), render: (_, group) => group.metadata.namespace },
          { title: w('phase'), render: (_, group) => <StateTag object={group} reason={false} /> },
          { title: w('minMember'), render: (_, group) => field(group, 'spec.minMember') },
          { title: w('priority'), render: (_, group) => field(group, 'spec.priority') ?? 0 },
          { title: w('message'), render: (_, group) => <span className="break">{saying(group)}</span> },
        ]}
      />
    </section>
  )
}
