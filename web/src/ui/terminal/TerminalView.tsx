/** A shell in a container; xterm comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../../frame/Waiting'
import { useWords } from '../../i18n'
import type { TerminalProps } from './Terminal'
import { words } from '../words'

const Terminal = lazy(() => import('./Terminal'))

export function TerminalView(props: TerminalProps) {
  const w = useWords(words)
  return (
    <Suspense fallback={<Waiting for={w('loadingTerminal')} height={320} />}>
      <Terminal {...props} />
    </Suspense>
  )
}
