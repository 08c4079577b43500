/** The state and, right beside it, its reason. */
import { CheckCircleFilled, ClockCircleOutlined, CloseCircleFilled, MinusCircleOutlined, SyncOutlined } from '@ant-design/icons'
import { Tag, Tooltip } from 'antd'
import type { KubeObject } from '../kube'
import { stateOf, type State, type Tone } from './state'

const LOOKS: Record<Tone, { color: string; icon: React.ReactNode }> = {
  good: { color: 'success', icon: <CheckCircleFilled /> },
  busy: { color: 'processing', icon: <SyncOutlined /> },
  waiting: { color: 'warning', icon: <ClockCircleOutlined /> },
  bad: { color: 'error', icon: <CloseCircleFilled /> },
  quiet: { color: 'default', icon: <MinusCircleOutlined /> },
}

export function StateTag({ object, state, reason = true }: { object?: KubeObject; state?: State; reason?: boolean }) {
  const shown = state ?? (object ? stateOf(object) : undefined)
  if (!shown) return null
  const look = LOOKS[shown.tone]
  const text = [shown.reason, shown.message].filter(Boolean).join(': ')
  return (
    <span className="state">
      <Tag color={look.color} icon={look.icon} style={{ marginInlineEnd: 0 }}>
        {shown.word}
      </Tag>
      {reason && text && (
        <Tooltip title={text} overlayStyle={{ maxWidth: 480 }}>
          <span className="state-reason" tabIndex={0}>
            {shown.reason ?? shown.message}
          </span>
        </Tooltip>
      )}
    </span>
  )
}
