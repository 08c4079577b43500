/** Table 状况 */
import { Tag, Typography } from 'antd'
import { useWords } from '../../i18n'
import { conditionsOf, type Condition, type KubeObject } from '../../kube'
import { carried } from '../../why/why'
import { DataTable } from '../table/DataTable'
import { ConditionType, SaidMessage, SaidReason, useOriginal } from '../Said'
import { Moment } from '../Time'
import { words } from '../words'

/** Kubernetes' own conditions have no room for causes: those of these stand in an annotation of the object. */
const IN_ANNOTATION: Readonly<Record<string, string>> = { Pod: 'PodScheduled', Node: 'Ready' }

const causesOf = (object: KubeObject, condition: Condition): ReturnType<typeof carried> =>
  condition.status === 'False' && IN_ANNOTATION[object.kind ?? ''] === condition.type ? carried(object) : carried(condition)

const changedAt = (condition: Condition): string => condition.lastTransitionTime ?? condition.lastUpdateTime ?? condition.lastProbeTime ?? ''

export function Conditions({ object }: { object: KubeObject }) {
  const w = useWords(words)
  const [original, originalBox] = useOriginal()
  return (
    <section>
      <div className="row" style={{ justifyContent: 'space-between' }}>
        <Typography.Title level={2} style={{ fontSize: 16, margin: '12px 0' }}>{w('conditions')}</Typography.Title>
        {originalBox}
      </div>
      <DataTable<Condition>
        rowKey="type"
        pagination={false}
        dataSource={[...conditionsOf(object)].sort((a, b) => (changedAt(a) < changedAt(b) ? 1 : -1))}
        locale={{ emptyText: w('empty') }}
        columns={[
          { title: w('type'), dataIndex: 'type', render: (type: string) => <ConditionType type={type} /> },
          { title: w('status'), dataIndex: 'status', render: (value: string) => <Tag>{value}</Tag> },
          { title: w('lastChange'), render: (_, condition) => <Moment at={changedAt(condition)} /> },
          { title: w('reason'), dataIndex: 'reason', render: (reason: string | undefined) => <SaidReason reason={reason ?? ''} /> },
          { title: w('message'), render: (_, condition) => <SaidMessage message={condition.message ?? ''} causes={causesOf(object, condition)} original={original} /> },
        ]}
      />
    </section>
  )
}
