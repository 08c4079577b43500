/** All training jobs of a project, of every kind, in one live table. */
import { DownOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useMemo } from 'react'
import { Link } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useText, useWords } from '../../i18n'
import { bytes, cores, devices, JOB_KINDS, useLists, type KubeObject } from '../../kube'
import { DropMenu } from '../../ui/DropMenu'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/ResourceTable'
import { Pair } from '../../ui/Share'
import { stateOf } from '../../ui/state'
import { Labels } from '../../ui/Summary'
import { JobMore, JobState } from './JobState'
import { MENU } from './menu'
import { knownSum, schedulingOf } from './reading'
import { useJobActions } from './useJobActions'
import { words } from './words'

const NVIDIA = 'nvidia.com/gpu'

export default function Jobs() {
  const w = useWords(words)
  const t = useText()
  const namespace = useNamespace()
  useCrumbs([{ label: w('jobs') }])
  const listed = useLists(JOB_KINDS, { namespace })
  const { actions, deleting } = useJobActions()

  const leading = useMemo<Column[]>(
    () => [{ key: 'status', title: w('status'), render: (job) => <JobState job={job} />, sort: (job) => stateOf(job).word }],
    [w],
  )
  const columns = useMemo<Column[]>(
    () => [
      { key: 'labels', title: w('labels'), render: (job) => <Labels of={job.metadata.labels} /> },
      { key: 'project', title: w('project'), render: (job) => job.metadata.namespace, hidden: true },
      { key: 'type', title: w('type'), render: (job) => <KindName kind={job.kind ?? ''} />, sort: (job) => job.kind ?? '' },
      { key: 'cpu', title: 'CPU', render: (job) => <Amounts of={job} resource="cpu" form={cores} />, sort: (job) => knownSum(job).requests.cpu ?? 0 },
      { key: 'memory', title: w('memory'), render: (job) => <Amounts of={job} resource="memory" form={bytes} />, sort: (job) => knownSum(job).requests.memory ?? 0 },
      { key: 'gpu', title: w('gpu'), render: (job) => <Devices of={job} />, sort: (job) => devices(knownSum(job).requests).reduce((sum, [, count]) => sum + count, 0) },
      { key: 'scheduler', title: w('scheduler'), render: (job) => schedulerWord(job, w), hidden: true },
      { key: 'queue', title: w('queue'), render: (job) => schedulingOf(job).queue ?? '-', hidden: true },
    ],
    [w],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'labels', title: w('labels'), value: (job) => Object.entries(job.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`) },
      { key: 'phase', title: w('phase'), value: (job) => stateOf(job).word },
      { key: 'scheduler', title: w('scheduler'), value: (job) => schedulerWord(job, w) },
      { key: 'queue', title: w('queue'), value: (job) => schedulingOf(job).queue },
      { key: 'type', title: w('type'), value: (job) => job.kind },
      { key: 'extended', title: w('extended'), value: (job) => devices(knownSum(job).requests).map(([name]) => name) },
    ],
    [w],
  )
  return (
    <ResourceTable
      id="jobs"
      listed={listed}
      leading={leading}
      columns={columns}
      filters={filters}
      linkTo={(job) => pathOf(job, namespace)}
      deleting={deleting}
      rowActions={actions}
      emptyText={w('noJobs')}
      expandable={expanded}
      extra={
        <DropMenu
          menu={{ items: MENU.map(({ kind, label }) => ({ key: kind.plural, label: <Link to={`/build/${namespace}/jobs/new/${kind.plural}`}>{t(label)}</Link> })) }}
        >
          <Button type="primary">
            {w('createJob')} <DownOutlined />
          </Button>
        </DropMenu>
      }
    />
  )
}

const expanded = (job: KubeObject) => <JobMore job={job} />

type W = (key: keyof typeof words) => string

export const schedulerWord = (job: KubeObject, w: W): string => {
  const { scheduler } = schedulingOf(job)
  return scheduler === 't9k' ? w('t9kScheduler') : scheduler === 'default' ? w('defaultScheduler') : scheduler
}

/** PyTorch|TrainingJob: a narrow column breaks it between its words. */
const KindName = ({ kind }: { kind: string }) => (
  <>
    {kind.split(/(?=TrainingJob$)/).map((part) => (
      <span key={part} className="nowrap">{part}<wbr /></span>
    ))}
  </>
)

/** 4.00 / 8.00: requests and limits of all replicas. */
export function Amounts({ of, resource, form }: { of: KubeObject; resource: string; form: (value: number) => string }) {
  const { requests, limits } = knownSum(of)
  const show = (value: number | undefined): string => (value ? form(value) : '-')
  return <Pair left={show(requests[resource])} right={show(limits[resource])} />
}

/** 2, or amd.com/gpu: 2 where it is not NVIDIA's. */
export function Devices({ of }: { of: KubeObject }) {
  const found = devices(knownSum(of).requests)
  if (found.length === 0) return <>-</>
  return <span title={found.map(([name, count]) => `${name}: ${count}`).join(', ')}>{found.map(([name, count]) => (name === NVIDIA ? String(count) : `${name}: ${count}`)).join(', ')}</span>
}
