/** The state and, right beside it, its reason. */
import { CheckCircleFilled, ClockCircleOutlined, CloseCircleFilled, MinusCircleOutlined, SyncOutlined } from '@ant-design/icons'
import { Tag, Tooltip } from 'antd'
import { useText } from '../i18n'
import type { KubeObject } from '../kube'
import { useSaid } from '../why/useSaid'
import { severityOf } from '../why/table'
import { usePodCauses } from '../why/useCauses'
import { sayAll, storedCauses } from '../why/why'
import { stateOf, type State, type Tone } from './state'

const STYLES: Record<Tone, { color: string; icon: React.ReactNode }> = {
  good: { color: 'success', icon: <CheckCircleFilled /> },
  busy: { color: 'processing', icon: <SyncOutlined /> },
  waiting: { color: 'warning', icon: <ClockCircleOutlined /> },
  bad: { color: 'error', icon: <CloseCircleFilled /> },
  quiet: { color: 'default', icon: <MinusCircleOutlined /> },
}

export function StateTag({ object, state, reason = true }: { object?: KubeObject; state?: State; reason?: boolean }) {
  const said = useSaid()
  const t = useText()
  const shown = state ?? (object ? stateOf(object) : undefined)
  const asked = usePodCauses(reason ? object : undefined)
  if (!shown) return null
  const style = STYLES[shown.tone]
  const causes = !object || object.kind === 'Pod' ? asked : storedCauses(object)
  // That something is on its way is told by its state; what keeps it, or is worth knowing, by its causes.
  const answer = sayAll(causes.filter((cause) => severityOf(cause) !== 'info'))
  const own = answer ? [t(answer.cause, said.parameters(answer.parameters))] : [shown.because && t(shown.because), shown.reason && said.reason(shown.reason), shown.message && said.stored(shown.message, causes)].filter(Boolean)
  return (
    <span className="state">
      <Tag color={style.color} icon={style.icon} style={{ marginInlineEnd: 0 }}>
        {shown.text ? t(shown.text) : shown.word}
      </Tag>
      {reason && own.length > 0 && (
        <Tooltip title={own.join(': ')} trigger={['hover', 'focus']} styles={{ root: { maxWidth: 480 } }}>
          <span className="state-reason" tabIndex={0}>
            {own[0]}
          </span>
        </Tooltip>
      )}
    </span>
  )
}
