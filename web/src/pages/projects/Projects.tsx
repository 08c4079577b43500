import { Button } from 'antd'
import { useMemo } from 'react'
import { Link, useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { conditionOf, field, KINDS, useList } from '../../kube'
import { ResourceTable, type Column } from '../../ui/ResourceTable'
import { StateTag } from '../../ui/StateTag'
import { useResourceName } from '../../ui/useResourceName'
import { words } from './words'

export default function Projects() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const projects = useList(KINDS.Project)
  const resourceName = useResourceName()
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [
      {
        key: 'ready',
        title: w('ready'),
        render: (project) => {
          const ready = conditionOf(project, 'Ready')
          return <StateTag state={{ word: ready?.status === 'True' ? 'Ready' : 'Pending', tone: ready?.status === 'True' ? 'good' : 'waiting', reason: ready?.status === 'True' ? undefined : ready?.reason, message: ready?.status === 'True' ? undefined : ready?.message }} />
        },
      },
      { key: 'queue', title: w('queue'), render: (project) => field(project, 'spec.defaultScheduler.t9kScheduler.queue') ?? '-' },
      {
        key: 'quota',
        title: w('quota'),
        render: (project) => {
          const hard = Object.entries((field(project, 'spec.resourceQuota.template.spec.hard') ?? {}) as Record<string, string>)
          return hard.length === 0 ? w('none') : hard.map(([name, value]) => <div key={name}><span className="quiet">{resourceName(name)}</span> {value}</div>)
        },
      },
    ],
    [w, resourceName],
  )
  return (
    <ResourceTable
      id="projects"
      listed={projects}
      columns={columns}
      linkTo={(project) => `/build/${project.metadata.namespace}/overview`}
      rowButtons={(project) => <Link to={`/build/${project.metadata.namespace}/overview`}>{w('enter')}</Link>}
      deleting={() => ({ consequences: w('deletes') })}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/projects/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
