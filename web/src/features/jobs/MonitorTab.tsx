/** What each replica uses over time, from metrics.k8s.io, with requests and limits as lines. */
import { Alert, Typography } from 'antd'
import { dateTime, useLanguage, useWords } from '../../i18n'
import type { TabProps } from '../../kinds/features'
import { bytes, cores, devices, field, type KubeObject } from '../../kube'
import { Chart, type Series } from '../../ui/usage/Chart'
import { useUsageHistory, type UsageHistory } from '../../ui/usage/usageHistory'
import { words as uiWords } from '../../ui/words'
import { boundsOf } from './bounds'
import { knownSum, replicaLabel, rolesOf } from './reading'
import { useJob } from './useJob'
import { words } from './words'

export default function MonitorTab({ object: job, view: given }: TabProps) {
  const w = useWords(words)
  const view = useJob(job, given)
  const ui = useWords(uiWords)
  const language = useLanguage()
  const history = useUsageHistory(job.metadata.namespace ?? '', view.replicas.map((replica) => replica.name))
  const labels = new Map(view.replicas.map((replica) => [replica.name, replicaLabel(replica)]))
  const running = view.pods.some((pod) => field(pod, 'status.phase') === 'Running')
  const gpus = devices(knownSum(job).requests).map(([name, count]) => `${name} × ${count}`).join(', ') || w('none')
  const measured = history.times.length > 0 && history.pods.length > 0
  return (
    <>
      {history.absent && <Alert type="info" showIcon style={{ marginBottom: 12 }} message={ui('metricsAbsent')} />}
      <Typography.Title level={2} style={{ fontSize: 16 }}>{w('clusterPanel')}</Typography.Title>
      {!measured && !history.absent && <p role="status">{running ? ui('measuring') : w('nothingRuns')}</p>}
      {measured && (
        <>
          <p className="quiet">{ui('sampledSince', { start: dateTime(new Date(history.times[0]! * 1000).toISOString(), language) })}</p>
          <Chart title={ui('cores')} times={history.times} format={cores} series={lines(job, history, 'cpu', labels, w)} />
          <Chart binary title={w('memory')} times={history.times} format={bytes} series={lines(job, history, 'memory', labels, w)} />
        </>
      )}
      {(
        [
          ['gpuPanel', w('gpuAbsent', { gpus })],
          ['networkPanel', w('networkAbsent')],
          ['diskPanel', w('diskAbsent')],
        ] as const
      ).map(([title, text]) => (
        <section key={title}>
          <Typography.Title level={2} style={{ fontSize: 16, marginTop: 16 }}>{w(title)}</Typography.Title>
          <p className="quiet">{text}</p>
        </section>
      ))}
    </>
  )
}

function lines(job: KubeObject, history: UsageHistory, resource: 'cpu' | 'memory', labels: ReadonlyMap<string, string>, w: (key: 'request' | 'limit') => string): Series[] {
  const used: Series[] = history.pods.map((name) => ({ label: labels.get(name) ?? name, values: history.of(name, resource) }))
  const bounds = boundsOf(rolesOf(job), resource).map(
    ({ role, bound, value }): Series => ({ label: `${w(bound)} ${role}`, values: history.times.map(() => value), bound }),
  )
  return [...used, ...bounds]
}
