/** Cards with counts, and what of it runs, waits or has failed. */
import { Card, Skeleton, Tag, Typography } from 'antd'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import { JOB_KINDS, KINDS, KubeError, useLists, type Kind } from '../../kube'
import { stateOf } from '../../ui/state'
import { words } from './words'

const GROUPS: { title: keyof typeof words; cards: { label: string; to: string; kinds: readonly Kind[]; states: boolean }[] }[] = [
  { title: 'storage', cards: [{ label: 'PersistentVolumeClaims', to: 'volumes', kinds: [KINDS.PersistentVolumeClaim], states: true }] },
  {
    title: 'build',
    cards: [
      { label: 'Notebooks', to: 'notebooks', kinds: [KINDS.Notebook], states: true },
      { label: 'Jobs', to: 'jobs', kinds: JOB_KINDS, states: true },
      { label: 'TensorBoards', to: 'tensorboards', kinds: [KINDS.TensorBoard], states: true },
      { label: 'Pods', to: 'pods', kinds: [KINDS.Pod], states: true },
    ],
  },
  {
    title: 'auxiliary',
    cards: [
      { label: 'Secrets', to: 'secrets', kinds: [KINDS.Secret], states: false },
      { label: 'ConfigMaps', to: 'configmaps', kinds: [KINDS.ConfigMap], states: false },
    ],
  },
]

export function Resources({ namespace }: { namespace: string }) {
  const w = useWords(words)
  return (
    <>
      {GROUPS.map((group) => (
        <section key={group.title}>
          <Typography.Title level={2} style={{ fontSize: 16, margin: '12px 0 8px' }}>
            {w(group.title)}
          </Typography.Title>
          <div className="overview-cards">
            {group.cards.map((card) => (
              <CountCard key={card.to} namespace={namespace} {...card} />
            ))}
          </div>
        </section>
      ))}
    </>
  )
}

function CountCard({ namespace, label, to, kinds, states }: { namespace: string; label: string; to: string; kinds: readonly Kind[]; states: boolean }) {
  const w = useWords(words)
  const listed = useLists(kinds, { namespace })
  const tones = { good: 0, busy: 0, waiting: 0, bad: 0, quiet: 0 }
  if (states) for (const object of listed.items) tones[stateOf(object).tone]++
  const refused = listed.error instanceof KubeError && listed.error.forbidden
  return (
    <Link to={`/build/${namespace}/${to}`} className="landing-card">
      <Card hoverable size="small">
        <div className="quiet">{label}</div>
        <div style={{ fontSize: 28, fontWeight: 600, lineHeight: 1.4 }}>
          {listed.loading ? <Skeleton.Button active size="small" /> : refused ? '-' : listed.items.length}
        </div>
        <div className="row" style={{ gap: 4, minHeight: 22 }}>
          {refused && <span className="quiet">{w('forbidden')}</span>}
          {tones.busy > 0 && <Tag color="processing">{w('running', { count: tones.busy })}</Tag>}
          {tones.waiting > 0 && <Tag color="warning">{w('waiting', { count: tones.waiting })}</Tag>}
          {tones.bad > 0 && <Tag color="error">{w('failed', { count: tones.bad })}</Tag>}
        </div>
      </Card>
    </Link>
  )
}
