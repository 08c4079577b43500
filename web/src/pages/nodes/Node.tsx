import { App, Button, Tag, Typography } from 'antd'
import { useMemo } from 'react'
import { useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, patchObject, useList, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/object/Conditions'
import { DataTable } from '../../ui/table/DataTable'
import { Events } from '../../ui/object/Events'
import { ObjectPage } from '../../ui/object/ObjectPage'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/table/ResourceTable'
import { stateOf } from '../../ui/state'
import { StateTag } from '../../ui/StateTag'
import { Summary } from '../../ui/object/Summary'
import { useResourceName } from '../../ui/useResourceName'
import { WhyBox } from '../../ui/WhyBox'
import { useSaid } from '../../why/useSaid'
import { allocations, amount, linesOf, NOTHING, rolesOf, type Allocation, type Line } from './allocation'
import { words } from './words'

export default function Node() {
  const w = useWords(words)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const observed = useObject(KINDS.Node, undefined, name)
  const pods = useList(KINDS.Pod, { fields: `spec.nodeName=${name}` })
  const allocation = useMemo(() => allocations(pods.items).get(name) ?? NOTHING, [pods.items, name])
  return (
    <ObjectPage
      kind={KINDS.Node}
      name={name}
      observed={observed}
      list={{ label: w('title'), to: `/build/${namespace}/nodes` }}
      above={(node) => <WhyBox object={node} />}
      actions={(node) => <Cordon node={node} />}
      tabs={(node) => [
        { key: 'node', label: w('node'), children: <About node={node} allocation={allocation} /> },
        { key: 'pods', label: `${w('podsHere')} (${allocation.pods.length})`, children: <Pods pods={allocation.pods} namespace={namespace} /> },
      ]}
    />
  )
}

function Cordon({ node }: { node: KubeObject }) {
  const w = useWords(words)
  const said = useSaid()
  const { message, notification } = App.useApp()
  const stopped = field(node, 'spec.unschedulable') === true
  const toggle = async (): Promise<void> => {
    try {
      await patchObject(KINDS.Node, undefined, node.metadata.name, { spec: { unschedulable: stopped ? null : true } })
      void message.success(w(stopped ? 'uncordoned' : 'cordoned', { name: node.metadata.name }))
    } catch (error) {
      notification.error({ message: said.error(error) })
    }
  }
  return <Button onClick={() => void toggle()}>{w(stopped ? 'uncordon' : 'cordon')}</Button>
}

function About({ node, allocation }: { node: KubeObject; allocation: Allocation }) {
  const w = useWords(words)
  const resourceName = useResourceName()
  const taints = (field(node, 'spec.taints') ?? []) as { key: string; value?: string; effect: string }[]
  return (
    <>
      <Summary
        object={node}
        entries={[
          { key: 'roles', label: w('roles'), value: rolesOf(node).join(', ') || '-' },
          { key: 'version', label: w('version'), value: field(node, 'status.nodeInfo.kubeletVersion') },
          { key: 'system', label: w('system'), value: `${field(node, 'status.nodeInfo.osImage') ?? ''} ${field(node, 'status.nodeInfo.kernelVersion') ?? ''}` },
          { key: 'runtime', label: w('runtime'), value: field(node, 'status.nodeInfo.containerRuntimeVersion') ?? '-' },
          { key: 'addresses', label: w('addresses'), value: ((field(node, 'status.addresses') ?? []) as { address: string }[]).map((each) => each.address).join(', ') },
          { key: 'taints', label: w('taints'), value: taints.length === 0 ? '-' : taints.map((taint) => <Tag key={`${taint.key}${taint.effect}`}>{`${taint.key}${taint.value ? `=${taint.value}` : ''}:${taint.effect}`}</Tag>) },
        ]}
      />
      <Typography.Title level={2} style={{ fontSize: 16, margin: '16px 0 8px' }}>{w('resources')}</Typography.Title>
      <DataTable<Line>
        rowKey="resource"
        pagination={false}
        dataSource={linesOf(node, allocation)}
        columns={[
          { title: w('resource'), render: (_, line) => resourceName(line.resource) },
          { title: w('capacity'), render: (_, line) => amount(line.resource, line.capacity) },
          { title: w('allocatable'), render: (_, line) => amount(line.resource, line.allocatable) },
          { title: w('allocated'), render: (_, line) => `${amount(line.resource, line.allocated)}${line.allocatable > 0 ? ` (${Math.round((line.allocated / line.allocatable) * 100)}%)` : ''}` },
        ]}
      />
      <Conditions object={node} />
      <Events namespace={undefined} objects={[node]} />
    </>
  )
}

function Pods({ pods, namespace }: { pods: readonly KubeObject[]; namespace: string }) {
  const w = useWords(words)
  const listed = useMemo(() => ({ items: pods, loading: false, partial: false, error: undefined }), [pods])
  const columns = useMemo<Column[]>(
    () => [
      { key: 'namespace', title: w('namespace'), sort: (pod) => pod.metadata.namespace ?? '', render: (pod) => pod.metadata.namespace },
      { key: 'status', title: w('status'), sort: (pod) => stateOf(pod).word, render: (pod) => <StateTag object={pod} /> },
    ],
    [w],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'namespace', title: w('namespace'), value: (pod) => pod.metadata.namespace },
      { key: 'status', title: w('status'), value: (pod) => stateOf(pod).word },
    ],
    [w],
  )
  return <ResourceTable id="node-pods" listed={listed} columns={columns} filters={filters} linkTo={(pod) => pathOf(pod, namespace)} bare />
}
