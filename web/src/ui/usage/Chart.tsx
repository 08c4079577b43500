/** Lines over time; uPlot comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../../frame/Waiting'
import { useWords } from '../../i18n'
import type { TimeChartProps } from './TimeChart'
import { words } from '../words'

export type { Series } from './TimeChart'

const TimeChart = lazy(() => import('./TimeChart'))

export function Chart(props: TimeChartProps) {
  const w = useWords(words)
  return (
    <Suspense fallback={<Waiting for={w('loadingChart')} height={props.height ?? 220} />}>
      <TimeChart {...props} />
    </Suspense>
  )
}
