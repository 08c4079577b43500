/** Something is on its way: says what, and only after a moment, so that quick things do not flicker. */
import { Spin } from 'antd'

export function Waiting({ for: what, height = 160 }: { for: string; height?: number | string }) {
  return (
    <Spin tip={what} delay={250}>
      <div style={{ minHeight: height }} role="status" aria-label={what} />
    </Spin>
  )
}
