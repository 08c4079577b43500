/** "1.50 / 4.00" with a thin bar: how much of something is taken. */
import { Progress } from 'antd'

/** "1.50 / 4.00", on two lines where one is too short for it. */
export const Pair = ({ left, right }: { left: string; right: string }) => (
  <span>
    <span className="nowrap">{left} /</span> <span className="nowrap">{right}</span>
  </span>
)

export function Share({ used, whole, format, label }: { used: number; whole: number; format: (value: number) => string; label: string }) {
  const share = whole > 0 ? used / whole : 0
  return (
    <div style={{ minWidth: 84 }}>
      <Pair left={format(used)} right={format(whole)} />
      <Progress
        percent={Math.min(100, Math.round(share * 100))}
        size="small"
        showInfo={false}
        aria-label={`${label} ${Math.round(share * 100)}%`}
        {...(share > 1 ? { status: 'exception' as const } : share >= 0.8 ? { strokeColor: '#b26a00' } : {})}
      />
    </div>
  )
}
