/** The logs of one or many containers in one view; comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../../frame/Waiting'
import { useWords } from '../../i18n'
import type { LogViewerProps } from './LogViewer'
import { words } from '../words'

export type { LogSource } from './LogViewer'

const LogViewer = lazy(() => import('./LogViewer'))

export function LogView(props: LogViewerProps) {
  const w = useWords(words)
  return (
    <Suspense fallback={<Waiting for={w('loadingLogs')} height={320} />}>
      <LogViewer {...props} />
    </Suspense>
  )
}
