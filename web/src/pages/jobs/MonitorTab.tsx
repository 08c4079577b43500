/** What each replica uses over time, from metrics.k8s.io, with requests and limits as lines. */
import { Alert, Typography } from 'antd'
import { useEffect, useState } from 'react'
import { dateTime, useLanguage, useWords } from '../../i18n'
import { bytes, cores, devices, messageOf, podUsage, useInterval, type KubeObject } from '../../kube'
import { Chart, type Series } from '../../ui/Chart'
import { words as uiWords } from '../../ui/words'
import { boundsOf, historyOf, type History } from './history'
import { knownSum, podSelector, replicaLabel, rolesOf } from './reading'
import type { JobView } from './useJob'
import { words } from './words'

const EVERY_S = 5

export default function MonitorTab({ job, view }: { job: KubeObject; view: JobView }) {
  const w = useWords(words)
  const ui = useWords(uiWords)
  const language = useLanguage()
  const history = historyOf(job.metadata.uid ?? job.metadata.name)
  const [, drawn] = useState(0)
  const [problem, setProblem] = useState<'absent' | string>()

  const measure = (): void => {
    void podUsage({ namespace: job.metadata.namespace, labels: podSelector({ kind: job.kind, name: job.metadata.name }) })
      .then((usage) => {
        setProblem(usage ? undefined : 'absent')
        if (usage && usage.length > 0) history.add(Date.now() / 1000, usage)
        drawn((value) => value + 1)
      })
      .catch((error: unknown) => setProblem(messageOf(error)))
  }
  useEffect(measure, [job.metadata.uid])
  useInterval(measure, EVERY_S * 1000)

  const labels = new Map(view.replicas.map((replica) => [replica.name, replicaLabel(replica)]))
  const running = view.pods.some((pod) => pod.status?.phase === 'Running')
  const gpus = devices(knownSum(job).requests).map(([name, count]) => `${name} × ${count}`).join(', ') || w('none')
  return (
    <>
      {problem && <Alert type="info" showIcon style={{ marginBottom: 12 }} message={problem === 'absent' ? ui('metricsAbsent') : w('metricsFailed', { message: problem })} />}
      <Typography.Title level={2} style={{ fontSize: 16 }}>{w('clusterPanel')}</Typography.Title>
      {history.times.length === 0 && !problem && <p role="status">{w(running ? 'measuring' : 'nothingRuns')}</p>}
      {history.times.length > 0 && (
        <>
          <p className="quiet">{w('since', { start: dateTime(new Date(history.times[0]! * 1000).toISOString(), language), seconds: EVERY_S })}</p>
          <Chart title={w('cores')} times={history.times} format={(value) => cores(value)} series={lines(job, history, 'cpu', labels, w)} />
          <Chart title={w('memory')} times={history.times} format={bytes} series={lines(job, history, 'memory', labels, w)} />
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

function lines(job: KubeObject, history: History, resource: 'cpu' | 'memory', labels: ReadonlyMap<string, string>, w: (key: 'request' | 'limit') => string): Series[] {
  const used: Series[] = history.names().map((name) => ({ label: labels.get(name) ?? name, values: history.values(name, resource) }))
  const bounds = boundsOf(rolesOf(job), resource).map(
    ({ role, bound, value }): Series => ({ label: `${w(bound)} ${role}`, values: history.times.map(() => value), dashed: true }),
  )
  return [...used, ...bounds]
}
