/** The YAML editor; CodeMirror comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../../frame/Waiting'
import { useWords } from '../../i18n'
import { useSaid } from '../../why/useSaid'
import type { CodeEditorProps } from './editor/CodeEditor'
import { words } from '../words'

const CodeEditor = lazy(() => import('./editor/CodeEditor'))

export function YamlEditor(props: Omit<CodeEditorProps, 'say'>) {
  const w = useWords(words)
  const { message } = useSaid()
  return (
    <Suspense fallback={<Waiting for={w('loadingEditor')} height={props.height ?? '60vh'} />}>
      <CodeEditor {...props} say={message} />
    </Suspense>
  )
}
