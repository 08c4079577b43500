/** The YAML editor; CodeMirror comes when it is first shown. */
import { Spin } from 'antd'
import { lazy, Suspense } from 'react'
import type { CodeEditorProps } from './editor/CodeEditor'

const CodeEditor = lazy(() => import('./editor/CodeEditor'))

export function YamlEditor(props: CodeEditorProps) {
  return (
    <Suspense fallback={<Spin><div style={{ height: props.height ?? '60vh' }} /></Spin>}>
      <CodeEditor {...props} />
    </Suspense>
  )
}
