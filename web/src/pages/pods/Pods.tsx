import { useQuery } from '@tanstack/react-query'
import { Button } from 'antd'
import { useMemo } from 'react'
import { Link, useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { bytes, cores, devices, field, KINDS, podSum, podUsage, useList } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/table/ResourceTable'
import { stateOf } from '../../ui/state'
import { StateTag } from '../../ui/StateTag'
import { useDeleting } from './deleting'
import { ownerOf, readyOf, restartsOf } from './reading'
import { words } from './words'

export default function Pods() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const pods = useList(KINDS.Pod, { namespace })
  const usage = useQuery({ queryKey: ['usage', namespace], queryFn: () => podUsage({ namespace }), refetchInterval: 10_000 })
  const deleting = useDeleting()
  useCrumbs([{ label: w('title') }])
  const used = useMemo(() => new Map((usage.data ?? []).map((each) => [each.name, each])), [usage.data])

  const columns = useMemo<Column[]>(
    () => [
      { key: 'phase', title: w('phase'), sort: (pod) => stateOf(pod).word, render: (pod) => <StateTag object={pod} /> },
      { key: 'ready', title: w('ready'), render: readyOf },
      { key: 'restarts', title: w('restarts'), sort: restartsOf, render: restartsOf },
      {
        key: 'owner',
        title: w('owner'),
        sort: (pod) => ownerOf(pod)?.name ?? '',
        render: (pod) => {
          const owner = ownerOf(pod)
          if (!owner) return '-'
          const to = pathOf({ kind: owner.kind, metadata: { name: owner.name, namespace } }, namespace)
          return to ? <Link to={to}>{owner.name}</Link> : `${owner.kind} ${owner.name}`
        },
      },
      { key: 'node', title: w('node'), sort: (pod) => field(pod, 'spec.nodeName') ?? '', render: (pod) => (field(pod, 'spec.nodeName') ? <Link to={`/build/${namespace}/nodes/${field(pod, 'spec.nodeName')}`}>{field(pod, 'spec.nodeName')}</Link> : '-') },
      { key: 'cpuUse', title: w('cpuUse'), sort: (pod) => used.get(pod.metadata.name)?.cpu ?? 0, render: (pod) => { const own = used.get(pod.metadata.name); return own ? cores(own.cpu) : '-' } },
      { key: 'memoryUse', title: w('memoryUse'), sort: (pod) => used.get(pod.metadata.name)?.memory ?? 0, render: (pod) => { const own = used.get(pod.metadata.name); return own ? <span className="nowrap">{bytes(own.memory)}</span> : '-' } },
      { key: 'gpu', title: w('gpu'), hidden: true, render: (pod) => devices(podSum(pod.spec).requests).map(([name, count]) => `${name} × ${count}`).join(', ') || '-' },
      { key: 'address', title: w('address'), hidden: true, render: (pod) => field(pod, 'status.podIP') ?? '-' },
    ],
    [w, namespace, used],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'phase', title: w('phase'), value: (pod) => stateOf(pod).word },
      { key: 'node', title: w('node'), value: (pod) => field(pod, 'spec.nodeName') },
    ],
    [w],
  )
  return (
    <ResourceTable
      id="pods"
      listed={pods}
      columns={columns}
      filters={filters}
      linkTo={(pod) => pathOf(pod, namespace)}
      deleting={deleting}
      rowActions={(pod) => [
        { key: 'logs', label: w('logs'), onClick: () => navigate(`${pathOf(pod, namespace)}?tab=logs`) },
        { key: 'terminal', label: w('terminal'), onClick: () => navigate(`${pathOf(pod, namespace)}?tab=terminal`) },
      ]}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/pods/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
