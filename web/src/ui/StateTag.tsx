/** The state and, right beside it, its reason. */
import { CheckCircleFilled, ClockCircleOutlined, CloseCircleFilled, MinusCircleOutlined, SyncOutlined } from '@ant-design/icons'
import { Tag, Tooltip } from 'antd'
import type { KubeObject } from '../kube'
import { useSaid } from '../why/useSaid'
import { stateOf, type State, type Tone } from './state'

const LOOKS: Record<Tone, { color: string; icon: React.ReactNode }> = {
  good: { color: 'success', icon: <CheckCircleFilled /> },
  busy: { color: 'processing', icon: <SyncOutlined /> },
  waiting: { color: 'warning', icon: <ClockCircleOutlined /> },
  bad: { color: 'error', icon: <CloseCircleFilled /> },
  quiet: { color: 'default', icon: <MinusCircleOutlined /> },
}

export function StateTag({ object, state, reason = true }: { object?: KubeObject; state?: State; reason?: boolean }) {
  const said = useSaid()
  const shown = state ?? (object ? stateOf(object) : undefined)
  if (!shown) return null
  const look = LOOKS[shown.tone]
  const own = [shown.reason && said.reason(shown.reason), shown.message && said.message(shown.message)].filter(Boolean)
  return (
    <span className="state">
      <Tag color={look.color} icon={look.icon} style={{ marginInlineEnd: 0 }}>
        {shown.word}
      </Tag>
      {reason && own.length > 0 && (
        <Tooltip title={own.join(': ')} overlayStyle={{ maxWidth: 480 }}>
          <span className="state-reason" tabIndex={0}>
            {own[0]}
          </span>
        </Tooltip>
      )}
    </span>
  )
}
