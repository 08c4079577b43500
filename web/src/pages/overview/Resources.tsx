/** Cards with counts, and what of it runs, waits or has failed. */
import { Card, Skeleton, Tag, Typography } from 'antd'
import { Link } from 'react-router-dom'
import { entriesOf } from '../../frame/pages'
import { useText, useWords } from '../../i18n'
import { KubeError, useLists, type Kind } from '../../kube'
import { stateOf } from '../../ui/state'
import { words } from './words'

const GROUPS = [
  { title: 'storage', section: 'storage' },
  { title: 'build', section: 'building' },
  { title: 'auxiliary', section: 'auxiliary' },
] as const

export function Resources({ namespace }: { namespace: string }) {
  const w = useWords(words)
  const t = useText()
  return (
    <>
      {GROUPS.map(({ title, section }) => (
        <section key={section}>
          <Typography.Title level={2} style={{ fontSize: 16, margin: '12px 0 8px' }}>
            {w(title)}
          </Typography.Title>
          <div className="overview-cards">
            {entriesOf(section).map((entry) => (
              <CountCard key={entry.key} namespace={namespace} label={entry.card ?? t(entry.title)} to={entry.key} kinds={entry.kinds} states={entry.states ?? true} />
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
