/** The YAML editor; CodeMirror comes when it is first shown. */
import { lazy, Suspense } from 'react'
import { Waiting } from '../frame/Waiting'
import { useWords } from '../i18n'
import type { CodeEditorProps } from './editor/CodeEditor'
import { words } from './words'

const CodeEditor = lazy(() => import('./editor/CodeEditor'))

export function YamlEditor(props: CodeEditorProps) {
  const w = useWords(words)
  return (
    <Suspense fallback={<Waiting for={w('loadingEditor')} height={props.height ?? '60vh'} />}>
      <CodeEditor {...props} />
    </Suspense>
  )
}
