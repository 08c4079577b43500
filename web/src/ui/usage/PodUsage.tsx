import { Alert } from 'antd'
import { dateTime, useLanguage, useWords } from '../../i18n'
import { bytes, cores, field, podSum, type KubeObject } from '../../kube'
import { Chart } from './Chart'
import { useUsageHistory } from './usageHistory'
import { words } from '../words'

/** 资源监测 of one pod: what it uses, between what it asks for and what it may use. */
export function PodUsage({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const language = useLanguage()
  const { name, namespace = '' } = pod.metadata
  const { times, absent, of } = useUsageHistory(namespace, [name])
  if (absent) return <Alert type="info" showIcon message={w('metricsAbsent')} />
  const sum = podSum(pod.spec)
  const flat = (value: number | undefined) => times.map(() => value ?? null)
  if (times.length === 0) return <p role="status">{w(field(pod, 'status.phase') === 'Running' ? 'measuring' : 'notMeasured')}</p>
  const lines = (resource: 'cpu' | 'memory') => [
    { label: w('used'), values: of(name, resource) },
    ...(sum.requests[resource] ? [{ label: w('request'), values: flat(sum.requests[resource]), bound: 'request' as const }] : []),
    ...(sum.limits[resource] ? [{ label: w('limit'), values: flat(sum.limits[resource]), bound: 'limit' as const }] : []),
  ]
  return (
    <>
      <p className="quiet">{w('sampledSince', { start: dateTime(new Date(times[0]! * 1000).toISOString(), language) })}</p>
      <Chart title={w('cores')} times={times} series={lines('cpu')} format={cores} />
      <Chart binary title={w('memory')} times={times} series={lines('memory')} format={bytes} />
    </>
  )
}
