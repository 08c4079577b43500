/** One job: what it is, its replicas, what they use, what they write. */
import { Button, Space } from 'antd'
import { lazy, Suspense } from 'react'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { JOB_KINDS, type Kind } from '../../kube'
import { ObjectPage } from '../../ui/ObjectPage'
import { WhyBox } from '../../ui/WhyBox'
import { KindTab } from './KindTab'
import { LogsTab } from './LogsTab'
import { ReplicasTab } from './ReplicasTab'
import { useJob } from './useJob'
import { useJobActions } from './useJobActions'
import { words } from './words'

const NotFound = lazy(() => import('../../frame/NotFound'))
const MonitorTab = lazy(() => import('./MonitorTab'))

export default function Job() {
  const { plural, name = '' } = useParams()
  const kind = JOB_KINDS.find((each) => each.plural === plural)
  return kind ? <JobOf key={`${plural}/${name}`} kind={kind} name={name} /> : <NotFound />
}

function JobOf({ kind, name }: { kind: Kind; name: string }) {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const view = useJob(kind, namespace, name)
  const { actions, deleting } = useJobActions()
  const list = { label: w('jobs'), to: `/build/${namespace}/jobs` }
  return (
    <ObjectPage
      kind={kind}
      name={name}
      observed={view.observed}
      list={list}
      deleting={(job) => deleting([job])}
      onDeleted={() => navigate(list.to)}
      actions={(job) => (
        <Space wrap>
          {actions(job).map((action) => (
            <Button key={action.key} onClick={action.onClick}>
              {action.label}
            </Button>
          ))}
        </Space>
      )}
      above={(job) => <WhyBox object={job} pods={view.pods} events={view.events} claims={view.claims} />}
      tabs={(job) => [
        { key: 'kind', label: kind.kind, children: <KindTab job={job} view={view} /> },
        { key: 'replicas', label: w('replicas'), children: <ReplicasTab job={job} view={view} /> },
        {
          key: 'monitor',
          label: w('monitor'),
          children: (
            <Suspense fallback={null}>
              <MonitorTab job={job} view={view} />
            </Suspense>
          ),
        },
        { key: 'logs', label: w('logs'), children: <LogsTab job={job} view={view} /> },
      ]}
    />
  )
}
