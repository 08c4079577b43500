import { Descriptions, Tag } from 'antd'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { containerStatuses, toneOf } from '../../ui/state'
import { StateTag } from '../../ui/StateTag'
import { useResourceName } from '../../ui/useResourceName'
import { containersOf, type Container } from './reading'
import { words } from './words'

export function Containers({ pod }: { pod: KubeObject }) {
  return (
    <div style={{ display: 'grid', gap: 16 }}>
      {containersOf(pod).map((container) => (
        <OneContainer key={container.name} pod={pod} container={container} />
      ))}
    </div>
  )
}

function OneContainer({ pod, container }: { pod: KubeObject; container: Container }) {
  const w = useWords(words)
  const resourceName = useResourceName()
  const status = containerStatuses(pod).find((each) => each.name === container.name)
  const { waiting, terminated, running } = status?.state ?? {}
  const word = waiting ? (waiting.reason ?? 'Waiting') : terminated ? (terminated.exitCode === 0 ? 'Completed' : 'Failed') : running ? 'Running' : 'Pending'
  const reason = terminated ? w('exitCode', { code: terminated.exitCode }) : undefined
  const amounts = (of: Record<string, string> | undefined): string => Object.entries(of ?? {}).map(([name, value]) => `${resourceName(name)} ${value}`).join(', ') || '-'
  return (
    <section>
      <h2 style={{ fontSize: 16 }}>
        {container.name} {container.init && <Tag>{w('initContainer')}</Tag>}
      </h2>
      <Descriptions
        size="small"
        bordered
        column={{ xs: 1, sm: 1, md: 2, lg: 2, xl: 2, xxl: 2 }}
        items={[
          { key: 'state', label: w('state'), children: <StateTag state={{ word, tone: toneOf(word), reason, message: terminated?.message ?? waiting?.message }} /> },
          { key: 'restarts', label: w('restarts'), children: status?.restartCount ?? 0 },
          { key: 'image', label: w('image'), children: <span className="break">{container.image}</span> },
          { key: 'ports', label: w('ports'), children: (container.ports ?? []).map((port) => `${port.containerPort}${port.name ? ` (${port.name})` : ''}`).join(', ') || '-' },
          { key: 'request', label: w('request'), children: amounts(container.resources?.requests) },
          { key: 'limit', label: w('limit'), children: amounts(container.resources?.limits) },
          { key: 'mounts', label: w('mounts'), children: (container.volumeMounts ?? []).map((mount) => `${mount.name} → ${mount.mountPath}`).join(', ') || '-', span: 'filled' },
          { key: 'command', label: w('command'), children: <code className="break">{[...(container.command ?? []), ...(container.args ?? [])].join(' ') || '-'}</code>, span: 'filled' },
          {
            key: 'environment',
            label: w('environment'),
            span: 'filled',
            children: <code className="break">{(container.env ?? []).map((each) => `${each.name}=${each.valueFrom === undefined ? (each.value ?? '') : '…'}`).join('\n') || '-'}</code>,
          },
        ]}
      />
    </section>
  )
}
