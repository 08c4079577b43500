/** The logs of one or many containers in one view; comes when it is first shown. */
import { Spin } from 'antd'
import { lazy, Suspense } from 'react'
import type { LogViewerProps } from './logs/LogViewer'

export type { LogSource } from './logs/LogViewer'

const LogViewer = lazy(() => import('./logs/LogViewer'))

export function LogView(props: LogViewerProps) {
  return (
    <Suspense fallback={<Spin><div style={{ height: 320 }} /></Spin>}>
      <LogViewer {...props} />
    </Suspense>
  )
}
