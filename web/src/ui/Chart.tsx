/** Lines over time; uPlot comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../frame/Waiting'
import { useWords } from '../i18n'
import type { TimeChartProps } from './chart/TimeChart'
import { words } from './words'

export type { Series } from './chart/TimeChart'

const TimeChart = lazy(() => import('./chart/TimeChart'))

export function Chart(props: TimeChartProps) {
  const w = useWords(words)
  return (
    <Suspense fallback={<Waiting for={w('loadingChart')} height={props.height ?? 220} />}>
      <TimeChart {...props} />
    </Suspense>
  )
}
