import { useQuery } from '@tanstack/react-query'
import { Tag } from 'antd'
import { useMemo } from 'react'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { bytes, cores, field, KINDS, nodeUsage, quantity, useList, type KubeObject } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/table/ResourceTable'
import { Pair, Share } from '../../ui/Share'
import { stateOf } from '../../ui/state'
import { StateTag } from '../../ui/StateTag'
import { allocations, gpusOf, NOTHING, rolesOf } from './allocation'
import { words } from './words'

export default function Nodes() {
  const w = useWords(words)
  const namespace = useNamespace()
  const nodes = useList(KINDS.Node)
  const pods = useList(KINDS.Pod)
  const usage = useQuery({ queryKey: ['nodeUsage'], queryFn: nodeUsage, refetchInterval: 10_000 })
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(() => {
    const given = allocations(pods.items)
    const of = (node: KubeObject) => given.get(node.metadata.name) ?? NOTHING
    const allocatable = (node: KubeObject, resource: string): number => quantity(field(node, 'status.allocatable')?.[resource])
    return [
      { key: 'status', title: w('status'), sort: (node) => stateOf(node).word, render: (node) => <StateTag object={node} /> },
      { key: 'cpu', title: w('cpu'), sort: (node) => of(node).requests.cpu ?? 0, render: (node) => <Share label="CPU" used={of(node).requests.cpu ?? 0} whole={allocatable(node, 'cpu')} format={cores} /> },
      { key: 'memory', title: w('memory'), sort: (node) => of(node).requests.memory ?? 0, render: (node) => <Share label={w('memory')} used={of(node).requests.memory ?? 0} whole={allocatable(node, 'memory')} format={bytes} /> },
      {
        key: 'gpu',
        title: w('gpu'),
        render: (node) => {
          const lines = gpusOf(node, of(node))
          return lines.length === 0 ? '-' : lines.map((line) => <Share key={line.resource} label={line.resource} used={line.allocated} whole={line.allocatable} format={String} />)
        },
      },
      { key: 'pods', title: w('pods'), sort: (node) => of(node).pods.length, render: (node) => <Pair left={String(of(node).pods.length)} right={String(allocatable(node, 'pods'))} /> },
      { key: 'cpuUse', title: w('cpuUse'), render: (node) => { const own = usage.data?.get(node.metadata.name); return own ? cores(own.cpu) : '-' } },
      { key: 'memoryUse', title: w('memoryUse'), render: (node) => { const own = usage.data?.get(node.metadata.name); return own ? <span className="nowrap">{bytes(own.memory)}</span> : '-' } },
      { key: 'roles', title: w('roles'), render: (node) => rolesOf(node).map((role) => <Tag key={role}>{role}</Tag>), hidden: true },
      { key: 'version', title: w('version'), render: (node) => <span className="nowrap">{field(node, 'status.nodeInfo.kubeletVersion')}</span> },
    ]
  }, [w, pods.items, usage.data])
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'status', title: w('status'), value: (node) => stateOf(node).word },
      { key: 'roles', title: w('roles'), value: rolesOf },
    ],
    [w],
  )
  return <ResourceTable id="nodes" listed={nodes} columns={columns} filters={filters} linkTo={(node) => pathOf(node, namespace)} defaultSort={{ key: 'name', order: 'ascend' }} />
}
