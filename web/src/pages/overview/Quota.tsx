/** Used and hard as bars, with a warning from 80 % on; without a quota, what the project's pods ask for. */
import { Alert, Progress } from 'antd'
import { useMemo } from 'react'
import { useWords } from '../../i18n'
import { field, KINDS, podSum, useList, type Sum } from '../../kube'
import { Waiting } from '../../frame/Waiting'
import { useResourceName } from '../../ui/useResourceName'
import { words as common } from '../../ui/words'
import { bars, formatAmount, WARNING_SHARE, type Bar } from './quota'
import { words } from './words'

export function Quota({ namespace }: { namespace: string }) {
  const w = useWords(words)
  const c = useWords(common)
  const quotas = useList(KINDS.ResourceQuota, { namespace })
  const made = useMemo(() => bars(quotas.items), [quotas.items])
  if (made.length > 0) {
    return (
      <div style={{ display: 'grid', gap: 16, maxWidth: 720 }}>
        {made.map((bar) => (
          <QuotaBar key={bar.resource} bar={bar} />
        ))}
      </div>
    )
  }
  if (quotas.loading) return <Waiting for={c('loadingQuota')} />
  return (
    <>
      <Alert type="info" showIcon message={w('noQuota', { project: namespace })} style={{ marginBottom: 16 }} />
      <Used namespace={namespace} />
    </>
  )
}

function QuotaBar({ bar }: { bar: Bar }) {
  const w = useWords(words)
  const name = useResourceName()
  const percent = Math.min(100, Math.round(bar.share * 100))
  const tone = bar.share >= 1 ? 'exception' : 'normal'
  const warned = bar.share >= WARNING_SHARE
  return (
    <div>
      <div className="row" style={{ justifyContent: 'space-between' }}>
        <strong>{name(bar.resource)}</strong>
        <span>{w('used', { used: formatAmount(bar.resource, bar.used), hard: formatAmount(bar.resource, bar.hard) })}</span>
      </div>
      <Progress percent={percent} status={tone} {...(warned && bar.share < 1 ? { strokeColor: '#b26a00' } : {})} aria-label={name(bar.resource)} />
      {warned && <div role="status">{bar.share >= 1 ? w('full') : w('nearly', { percent })}</div>}
    </div>
  )
}

function Used({ namespace }: { namespace: string }) {
  const w = useWords(words)
  const name = useResourceName()
  const pods = useList(KINDS.Pod, { namespace })
  const sum = useMemo(() => {
    const total: Sum = { requests: {}, limits: {} }
    for (const pod of pods.items) if (!['Succeeded', 'Failed'].includes(field(pod, 'status.phase'))) podSum(pod.spec, 1, total)
    return total
  }, [pods.items])
  return (
    <section aria-label={w('mine')}>
      <h2 style={{ fontSize: 16 }}>
        {w('mine')} <span className="quiet">({w('sumRequests')})</span>
      </h2>
      <dl className="amounts">
        <dt>{w('pods')}</dt>
        <dd>{pods.items.length}</dd>
        {Object.entries(sum.requests).map(([resource, amount]) => (
          <div key={resource} style={{ display: 'contents' }}>
            <dt>{name(resource)}</dt>
            <dd>{formatAmount(resource, amount)}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}
