/** Lines over time; uPlot comes when it is first shown. */
import { Spin } from 'antd'
import { lazy, Suspense } from 'react'
import type { TimeChartProps } from './chart/TimeChart'

export type { Series } from './chart/TimeChart'

const TimeChart = lazy(() => import('./chart/TimeChart'))

export function Chart(props: TimeChartProps) {
  return (
    <Suspense fallback={<Spin><div style={{ height: props.height ?? 220 }} /></Spin>}>
      <TimeChart {...props} />
    </Suspense>
  )
}
