/** The first tab, named after the kind: summary, types of replicas, conditions, events. */
import { Checkbox, Typography } from 'antd'
import { useMemo, useState } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import type { TabProps } from '../../kinds/features'
import { bytes, cores, field, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/object/Conditions'
import { DataTable } from '../../ui/table/DataTable'
import { Events } from '../../ui/object/Events'
import { stateOf } from '../../ui/state'
import { Summary, type Entry } from '../../ui/object/Summary'
import { Moment } from '../../ui/Time'
import { Devices, Amounts, schedulerWord } from './renderers'
import { JobState } from './JobState'
import { claimsOf, otherVolumesOf, rolesOf, schedulingOf, type Role } from './reading'
import { TensorBoardLink } from './TensorBoardLink'
import { useJob, type JobView } from './useJob'
import { words } from './words'

export function KindTab({ object: job, view: given }: TabProps) {
  const w = useWords(words)
  const view = useJob(job, given)
  const [detailed, setDetailed] = useState(false)
  const about = useMemo(() => (detailed ? [job, ...view.pods] : [job]), [detailed, job, view.pods])
  const roles = rolesOf(job)
  const claims = claimsOf(job)
  const scheduling = schedulingOf(job)
  const restarts: number = field(job, 'status.backoffCount') ?? view.pods.reduce((sum, pod) => sum + restartsOf(pod), 0)
  const entries: Entry[] = [
    { key: 'state', label: w('status'), value: <JobState job={job} wide /> },
    { key: 'replicas', label: w('replicas'), value: roles.map((role) => <div key={role.name}>{`${role.name}: ${role.replicas}`}</div>) },
    {
      key: 'volumes',
      label: w('volumes'),
      value: (
        <span className="row">
          {claims.map((claim) => (
            <Link key={claim} to={`/build/${job.metadata.namespace}/volumes/${claim}`}>{claim}</Link>
          ))}
          {otherVolumesOf(job).map((text) => <span key={text}>{text}</span>)}
          {claims.length + otherVolumesOf(job).length === 0 && '-'}
        </span>
      ),
    },
    { key: 'cpu', label: w('cpuSum'), value: <Amounts of={job} resource="cpu" form={cores} /> },
    { key: 'memory', label: w('memorySum'), value: <Amounts of={job} resource="memory" form={bytes} /> },
    { key: 'gpu', label: w('gpuSum'), value: <Devices of={job} /> },
    { key: 'scheduler', label: w('scheduler'), value: [schedulerWord(job, w), scheduling.queue, scheduling.priority].filter(Boolean).join(' · ') },
    { key: 'tensorboard', label: w('tensorboard'), value: <TensorBoardLink job={job} /> },
    { key: 'restarts', label: w('restarts'), value: restarts },
    { key: 'started', label: w('started'), value: <Moment at={field(job, 'status.startTime')} /> },
    { key: 'ended', label: w('ended'), value: <Moment at={field(job, 'status.completionTime')} /> },
  ]
  return (
    <>
      <Summary object={job} entries={entries} state={false} />
      <Typography.Title level={2} style={{ fontSize: 16, margin: '16px 0 8px' }}>{w('overview')}</Typography.Title>
      <DataTable<Role>
        rowKey="name"
        pagination={false}
        dataSource={roles}
        columns={[
          { title: w('replicaType'), dataIndex: 'name' },
          { title: w('replicaCount'), dataIndex: 'replicas' },
          { title: w('status'), render: (_, role) => statesOf(role, view) },
          { title: w('image'), render: (_, role) => role.spec.containers?.map((each) => <Typography.Text key={each.name} copyable className="mono">{each.image}</Typography.Text>) },
          { title: w('restartPolicy'), render: (_, role) => role.restartPolicy || 'Never' },
        ]}
      />
      <div style={{ marginTop: 16 }}>
        <Conditions object={job} />
      </div>
      <Events
        namespace={job.metadata.namespace}
        objects={about}
        showObject={detailed}
        tools={
          <Checkbox checked={detailed} onChange={(event) => setDetailed(event.target.checked)}>
            {w('detailedEvents')}
          </Checkbox>
        }
      />
    </>
  )
}

const restartsOf = (pod: KubeObject): number =>
  ((field(pod, 'status.containerStatuses') ?? []) as { restartCount?: number }[]).reduce((sum, each) => sum + (each.restartCount ?? 0), 0)

/** Running 3, Pending 1 */
function statesOf(role: Role, view: JobView): string {
  const counts = new Map<string, number>()
  for (const replica of view.replicas) {
    if (replica.role !== role.name) continue
    const word = replica.pod ? stateOf(replica.pod).word : (replica.told?.phase ?? 'Unknown')
    counts.set(word, (counts.get(word) ?? 0) + 1)
  }
  return [...counts].map(([word, count]) => `${word} ${count}`).join(', ') || '-'
}
