/** CodeMirror with YAML, and the cluster's own schemas behind completion and hover. Loaded when first needed. */
import { autocompletion, closeBrackets, completionKeymap, closeBracketsKeymap } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, defaultHighlightStyle, foldGutter, foldKeymap, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { linter, lintGutter, lintKeymap, type Diagnostic } from '@codemirror/lint'
import { highlightSelectionMatches, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState, Prec, type Extension } from '@codemirror/state'
import { oneDark } from '@codemirror/theme-one-dark'
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from '@codemirror/view'
import { useEffect, useId, useRef } from 'react'
import { useTheme } from '../../../frame/theme'
import { useWords } from '../../../i18n'
import { words } from '../../words'
import { parseYaml, type YamlFault } from '../yamlText'
import { completeFromSchema, helpAt } from './schema'

export interface CodeEditorProps {
  value: string
  onChange?: (value: string) => void
  readOnly?: boolean
  /** Faults found elsewhere (by the server), shown at their lines. */
  faults?: readonly YamlFault[]
  /** in the person's language */
  say: (message: string) => string
  height?: string
  label: string
  autoFocus?: boolean
}

// On its own grey the theme's colours are too faint to read; on the console's ground they are not.
const DARK = Prec.high(
  EditorView.theme({ '&': { backgroundColor: '#12161c' }, '.cm-gutters': { backgroundColor: '#12161c', color: '#a6adb8' }, '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: '#1b222c' } }, { dark: true }),
)

const NONE: readonly YamlFault[] = []

function diagnostics(view: EditorView, extra: readonly YamlFault[], say: (message: string) => string): Diagnostic[] {
  const text = view.state.doc
  return [...parseYaml(text.toString()).faults, ...extra].map((fault) => {
    const line = text.line(Math.min(Math.max(1, fault.line), text.lines))
    return { from: Math.min(line.from + fault.column - 1, line.to), to: line.to, severity: 'error' as const, message: say(fault.message) }
  })
}

export default function CodeEditor({ value, onChange, readOnly = false, faults = NONE, say, height = '60vh', label, autoFocus }: CodeEditorProps) {
  const w = useWords(words)
  const help = useId()
  const host = useRef<HTMLDivElement>(null)
  const view = useRef<EditorView>(undefined)
  const changed = useRef(onChange)
  changed.current = onChange
  const chosenTheme = useTheme()
  const parts = useRef({ theme: new Compartment(), lint: new Compartment() })

  useEffect(() => {
    const extensions: Extension[] = [
      lineNumbers(),
      foldGutter(),
      lintGutter(),
      history(),
      drawSelection(),
      indentOnInput(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      highlightSelectionMatches(),
      yaml(),
      autocompletion({ override: [completeFromSchema], activateOnTyping: true }),
      hoverTooltip(helpAt),
      keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
      EditorView.contentAttributes.of({ 'aria-label': label, ...(readOnly ? {} : { 'aria-describedby': help }) }),
      EditorView.theme({ '&': { height }, '.cm-scroller': { overflow: 'auto' } }),
      EditorState.readOnly.of(readOnly),
      EditorState.tabSize.of(2),
      parts.current.theme.of([]),
      parts.current.lint.of([]),
      EditorView.updateListener.of((update) => {
        if (update.docChanged) changed.current?.(update.state.doc.toString())
      }),
    ]
    const made = new EditorView({ parent: host.current!, state: EditorState.create({ doc: value, extensions }) })
    view.current = made
    made.scrollDOM.tabIndex = 0 // long lines are scrolled with the keyboard, too
    made.scrollDOM.setAttribute('role', 'group')
    made.scrollDOM.setAttribute('aria-label', label)
    if (autoFocus) made.focus()
    return () => made.destroy()
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the text is kept in step below
  }, [readOnly, height, label, autoFocus, help])

  useEffect(() => {
    const shown = view.current
    if (shown && shown.state.doc.toString() !== value) {
      shown.dispatch({ changes: { from: 0, to: shown.state.doc.length, insert: value } })
    }
  }, [value, readOnly])

  useEffect(() => {
    const style = chosenTheme === 'dark' ? [DARK, oneDark] : syntaxHighlighting(defaultHighlightStyle)
    view.current?.dispatch({ effects: parts.current.theme.reconfigure(style) })
  }, [chosenTheme, readOnly])

  useEffect(() => {
    const lint = linter((shown) => diagnostics(shown, faults, say), { delay: 200 })
    view.current?.dispatch({ effects: parts.current.lint.reconfigure(readOnly ? [] : lint) })
  }, [faults, say, readOnly])

  // Escape closes completion and search here; it must not close the dialog around and lose what was written.
  return (
    <>
      <div className="yaml-editor" ref={host} onKeyDown={(event) => event.key === 'Escape' && event.stopPropagation()} />
      {!readOnly && <div id={help} className="quiet">{w('leaveEditor')}</div>}
    </>
  )
}
