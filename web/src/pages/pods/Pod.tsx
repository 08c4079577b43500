import { Alert, Checkbox, Select } from 'antd'
import { useState } from 'react'
import { Link, useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { bytes, cores, devices, field, KINDS, podSum, useList, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/object/Conditions'
import { Events, useEvents } from '../../ui/object/Events'
import { LogView } from '../../ui/logs/LogView'
import { ObjectPage } from '../../ui/object/ObjectPage'
import { pathOf } from '../../ui/paths'
import { PodUsage } from '../../ui/usage/PodUsage'
import { Summary } from '../../ui/object/Summary'
import { TerminalView } from '../../ui/terminal/TerminalView'
import { WhyBox } from '../../ui/WhyBox'
import { Containers } from './Containers'
import { useDeleting } from './deleting'
import { containersOf, isRunning, ownerOf, readyOf, restartsOf } from './reading'
import { words } from './words'

export default function Pod() {
  const w = useWords(words)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const navigate = useNavigate()
  const observed = useObject(KINDS.Pod, namespace, name)
  const deleting = useDeleting()
  const list = { label: w('title'), to: `/build/${namespace}/pods` }
  return (
    <ObjectPage
      kind={KINDS.Pod}
      name={name}
      observed={observed}
      list={list}
      deleting={(pod) => deleting([pod])}
      onDeleted={() => navigate(list.to)}
      above={(pod) => <Why pod={pod} />}
      tabs={(pod) => [
        { key: 'pod', label: 'Pod', children: <About pod={pod} /> },
        { key: 'containers', label: w('containers'), children: <Containers pod={pod} /> },
        { key: 'monitoring', label: w('monitoring'), children: <PodUsage pod={pod} /> },
        { key: 'logs', label: w('logs'), children: <Logs pod={pod} /> },
        { key: 'terminal', label: w('terminal'), children: <Shell pod={pod} /> },
      ]}
    />
  )
}

function Why({ pod }: { pod: KubeObject }) {
  const events = useEvents(pod.metadata.namespace, [pod])
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace: pod.metadata.namespace })
  return <WhyBox object={pod} events={events.items} claims={claims.items} />
}

function About({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const namespace = pod.metadata.namespace ?? ''
  const sum = podSum(pod.spec)
  const owner = ownerOf(pod)
  const ownerPath = owner && pathOf({ kind: owner.kind, metadata: { name: owner.name, namespace } }, namespace)
  const node: string | undefined = field(pod, 'spec.nodeName')
  const pair = (resource: string, form: (value: number) => string): string => `${sum.requests[resource] === undefined ? '-' : form(sum.requests[resource])} / ${sum.limits[resource] === undefined ? '-' : form(sum.limits[resource])}`
  const volumes = (field(pod, 'spec.volumes') ?? []) as { name: string; persistentVolumeClaim?: { claimName: string } }[]
  const claims = volumes.flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? [])
  return (
    <>
      <Summary
        object={pod}
        entries={[
          ...(owner ? [{ key: 'owner', label: w('owner'), value: ownerPath ? <Link to={ownerPath}>{owner.kind} {owner.name}</Link> : `${owner.kind} ${owner.name}` }] : []),
          { key: 'node', label: w('node'), value: node ? <Link to={`/build/${namespace}/nodes/${node}`}>{node}</Link> : '-' },
          { key: 'ready', label: w('ready'), value: readyOf(pod) },
          { key: 'restarts', label: w('restarts'), value: restartsOf(pod) },
          { key: 'cpu', label: w('cpuAsked'), value: pair('cpu', cores) },
          { key: 'memory', label: w('memoryAsked'), value: pair('memory', bytes) },
          { key: 'gpu', label: w('gpu'), value: devices(sum.requests).map(([resource, count]) => `${resource} × ${count}`).join(', ') || '-' },
          { key: 'address', label: w('address'), value: field(pod, 'status.podIP') ?? '-' },
          { key: 'scheduler', label: w('scheduler'), value: field(pod, 'spec.schedulerName') ?? '-' },
          {
            key: 'volumes',
            label: w('volumes'),
            value: claims.length === 0 ? '-' : claims.map((claim) => <Link key={claim} to={`/build/${namespace}/volumes/${claim}`} style={{ marginInlineEnd: 8 }}>{claim}</Link>),
          },
        ]}
      />
      <Conditions object={pod} />
      <Events namespace={namespace} objects={[pod]} />
    </>
  )
}

function useContainer(pod: KubeObject): { container: string; chooser: React.ReactNode } {
  const w = useWords(words)
  const all = containersOf(pod)
  const [chosen, setChosen] = useState(() => (all.find((each) => !each.init) ?? all[0])?.name ?? '')
  const chooser =
    all.length > 1 ? <Select aria-label={w('container')} value={chosen} onChange={setChosen} options={all.map((each) => ({ value: each.name, label: each.init ? `${each.name} (${w('initContainer')})` : each.name }))} style={{ minWidth: 140 }} /> : null
  return { container: chosen, chooser }
}

function Logs({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const { container, chooser } = useContainer(pod)
  const [previous, setPrevious] = useState(false)
  const restarted = restartsOf(pod) > 0
  return (
    <LogView
      sources={[{ label: container, namespace: pod.metadata.namespace ?? '', pod: pod.metadata.name, uid: pod.metadata.uid, container, previous }]}
      fileName={`${pod.metadata.name}-${container}`}
      tools={
        <>
          {chooser}
          {restarted && (
            <Checkbox checked={previous} onChange={(event) => setPrevious(event.target.checked)}>
              {w('previous')}
            </Checkbox>
          )}
        </>
      }
    />
  )
}

function Shell({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const { container, chooser } = useContainer(pod)
  return (
    <>
      {chooser && <div className="table-tools">{chooser}</div>}
      {isRunning(pod, container) ? <TerminalView namespace={pod.metadata.namespace ?? ''} pod={pod.metadata.name} container={container} /> : <Alert type="info" showIcon message={w('notRunning')} />}
    </>
  )
}
