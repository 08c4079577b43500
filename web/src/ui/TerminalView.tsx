/** A shell in a container; xterm comes when it is first shown. */
import { Spin } from 'antd'
import { lazy, Suspense } from 'react'
import type { TerminalProps } from './terminal/Terminal'

const Terminal = lazy(() => import('./terminal/Terminal'))

export function TerminalView(props: TerminalProps) {
  return (
    <Suspense fallback={<Spin><div style={{ height: 320 }} /></Spin>}>
      <Terminal {...props} />
    </Suspense>
  )
}
