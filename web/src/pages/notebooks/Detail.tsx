import { Empty, Typography } from 'antd'
import { Link, useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { dateTime, useWords } from '../../i18n'
import { field, KINDS, useList, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/Conditions'
import { Events } from '../../ui/Events'
import { LogView } from '../../ui/LogView'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ObjectPage } from '../../ui/ObjectPage'
import { PodUsage } from '../../ui/PodUsage'
import { ServedButtons, servingPod } from '../../ui/ServedButtons'
import { Summary } from '../../ui/Summary'
import { TerminalView } from '../../ui/TerminalView'
import { useServingEvents } from '../../ui/useServing'
import { WhyBox } from '../../ui/WhyBox'
import { pathOf } from '../../ui/paths'
import { claimNamed, claimsOf, imageOf, rangesOf, sshCommands, TYPES, useOf } from './reading'
import { words as common } from '../../ui/words'
import { words } from './words'

export default function Detail() {
  const w = useWords(words)
  const c = useWords(common)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const { name = '' } = useParams()
  const observed = useObject(KINDS.Notebook, namespace, name)
  const podName = observed.object && servingPod(observed.object)
  const { object: pod } = useObject(KINDS.Pod, namespace, podName ?? '', { enabled: podName !== undefined })
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace })
  const list = { label: w('title'), to: `/build/${namespace}/notebooks` }
  const running = podName !== undefined && pod !== undefined && field(pod, 'status.phase') === 'Running'
  const container: string = field(pod, 'spec.containers.0.name') ?? 'notebook'
  const nothing = <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={w('noPod')} />
  return (
    <ObjectPage
      kind={KINDS.Notebook}
      name={name}
      observed={observed}
      list={list}
      deleting={() => ({ consequences: w('deletes') })}
      onDeleted={() => navigate(list.to)}
      actions={(notebook) => <ServedButtons kind={KINDS.Notebook} app="notebook" object={notebook} />}
      above={(notebook) => <Why notebook={notebook} pods={pod && podName ? [pod] : []} claims={claims.items} />}
      tabs={(notebook) => [
        {
          key: 'summary',
          label: 'Notebook',
          children: (
            <>
              <Overview notebook={notebook} namespace={namespace} />
              <Conditions object={notebook} />
              <Events namespace={namespace} objects={pod && podName ? [notebook, pod] : [notebook]} />
            </>
          ),
        },
        { key: 'logs', label: w('logs'), children: running ? <LogView height="60vh" fileName={name} sources={[{ label: name, namespace, pod: podName, uid: pod.metadata.uid, container }]} /> : nothing },
        { key: 'monitor', label: c('monitor'), children: running ? <PodUsage pod={pod} /> : nothing },
        { key: 'terminal', label: w('terminal'), children: running ? <TerminalView namespace={namespace} pod={podName} container={container} /> : nothing },
      ]}
    />
  )
}

function Overview({ notebook, namespace }: { notebook: KubeObject; namespace: string }) {
  const w = useWords(words)
  const queue: string | undefined = field(notebook, 'spec.scheduler.t9kScheduler.queue')
  const ranges = rangesOf(notebook)
  const pod = servingPod(notebook)
  const lastActivity: string | undefined = field(notebook, 'status.lastActivity')
  return (
    <Summary
      object={notebook}
      entries={[
        { key: 'type', label: w('type'), value: TYPES[field(notebook, 'spec.type') as string] ?? field(notebook, 'spec.type') },
        { key: 'image', label: w('image'), value: <span className="break">{imageOf(notebook)}</span> },
        { key: 'pod', label: 'Pod', value: pod ? <Link to={pathOf({ kind: 'Pod', metadata: { name: pod, namespace } }, namespace) ?? ''}>{pod}</Link> : '-' },
        { key: 'volumes', label: w('volumes'), value: <ObjectLinks objects={claimsOf(notebook).map(claimNamed)} namespace={namespace} /> },
        { key: 'cpu', label: w('cpuRange'), value: ranges.cpu },
        { key: 'memory', label: w('memoryRange'), value: ranges.memory },
        { key: 'scheduler', label: w('scheduler'), value: queue ? w('t9kScheduler', { queue }) : w('defaultScheduler') },
        { key: 'idle', label: w('idle'), value: `${w(useOf(notebook))}${lastActivity ? ` · ${w('lastActivity', { time: dateTime(lastActivity) })}` : ''}` },
        { key: 'ssh', label: w('ssh'), value: <Ssh notebook={notebook} />, wide: true },
      ]}
    />
  )
}

function Ssh({ notebook }: { notebook: KubeObject }) {
  const w = useWords(words)
  const commands = sshCommands(notebook)
  if (commands.length === 0) return <>{w('sshOff')}</>
  return (
    <>
      <span className="quiet">{w('sshHelp')}</span>
      {commands.map((command) => (
        <div key={command}>
          <Typography.Text code copyable>
            {command}
          </Typography.Text>
        </div>
      ))}
    </>
  )
}

function Why({ notebook, pods, claims }: { notebook: KubeObject; pods: readonly KubeObject[]; claims: readonly KubeObject[] }) {
  const events = useServingEvents(notebook, pods)
  return <WhyBox object={notebook} pods={pods} events={events} claims={claims} />
}
