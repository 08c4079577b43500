import { Alert } from 'antd'
import { useWords } from '../../i18n'
import { bytes, podSum, type KubeObject } from '../../kube'
import { Chart } from '../../ui/Chart'
import { useUsageHistory } from '../../ui/usageHistory'
import { words as common } from '../../ui/words'
import { words } from './words'

export function Monitoring({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const c = useWords(common)
  const { name, namespace = '' } = pod.metadata
  const { times, absent, of } = useUsageHistory({ namespace, fields: `metadata.name=${name}` })
  if (absent) return <Alert type="info" showIcon message={c('metricsAbsent')} />
  const sum = podSum(pod.spec)
  const flat = (value: number | undefined) => times.map(() => value ?? null)
  const lines = (resource: 'cpu' | 'memory') => [
    { label: w('used'), values: of(name, resource) },
    ...(sum.requests[resource] ? [{ label: w('request'), values: flat(sum.requests[resource]), dashed: true }] : []),
    ...(sum.limits[resource] ? [{ label: w('limit'), values: flat(sum.limits[resource]), dashed: true }] : []),
  ]
  return (
    <>
      <p className="quiet">{w('sampled')}</p>
      <Chart title="CPU" times={times} series={lines('cpu')} format={(value) => value.toPrecision(3)} />
      <Chart title={w('memory')} times={times} series={lines('memory')} format={bytes} />
    </>
  )
}
