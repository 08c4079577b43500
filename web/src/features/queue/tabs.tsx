import { Typography } from 'antd'
import { useMemo } from 'react'
import { useWords } from '../../i18n'
import type { SectionPart } from '../../kinds/features'
import { field, platformKind, useList, type KubeObject } from '../../kube'
import { DataTable } from '../../ui/table/DataTable'
import { StateTag } from '../../ui/StateTag'
import { saying } from './reading'
import { words } from './words'

const POD_GROUP = platformKind('PodGroup')

/** Pod groups of all projects that stand in this queue. */
function Work({ object: queue }: { object: KubeObject }) {
  const w = useWords(words)
  const groups = useList(POD_GROUP)
  const own = useMemo(() => groups.items.filter((group) => (field(group, 'spec.queue') ?? 'default') === queue.metadata.name), [groups.items, queue.metadata.name])
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

export const SECTIONS: Record<string, SectionPart> = { 'queue-work': Work }
