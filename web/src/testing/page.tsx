/** Opens the whole console at an address, as a person would, in one language or the other. */
import { EditorView } from '@codemirror/view'
import { act, render, waitFor } from '@testing-library/react'
import userEvent, { type UserEvent } from '@testing-library/user-event'
import { vi } from 'vitest'
import App from '../App'
import { LANGUAGES, setLanguage, type Language } from '../i18n'
import { FakeServer } from './server'
import { FakeSocket } from './socket'

export { LANGUAGES, type Language }

/** of this test */
export let server: FakeServer

/** For setup.ts. */
export function start(): void {
  server = new FakeServer()
  vi.stubGlobal('fetch', server.fetch)
  // `new` of a function that answers an object is that object.
  vi.stubGlobal('WebSocket', Object.assign(function (address: string) { return server.connect(address) }, { OPEN: FakeSocket.OPEN }))
}

export function open(address: string, language: Language = 'en'): UserEvent {
  history.replaceState(null, '', address)
  setLanguage(language)
  render(<App />, { container: document.getElementById('root')! })
  return userEvent.setup({ advanceTimers: (ms) => (vi.isFakeTimers() ? vi.advanceTimersByTimeAsync(ms).then(() => undefined) : Promise.resolve()) })
}

/** Before a page is opened: time goes by itself as it does outside, and as much faster as `pass` says. */
export const ownTime = (): void => void vi.useFakeTimers({ shouldAdvanceTime: true })

/** Lets the time pass. */
export const pass = (ms: number): Promise<void> => act(() => vi.advanceTimersByTimeAsync(ms).then(() => undefined))

/** Writes into the YAML editor, whose text is not in the document as a field's is. */
export async function writeYaml(text: string): Promise<void> {
  const content = await waitFor(() => {
    const found = document.querySelector<HTMLElement>('.cm-content')
    if (!found) throw new Error('there is no editor')
    return found
  })
  const view = EditorView.findFromDOM(content)!
  act(() => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }))
}

/** What the YAML editor holds. */
export const readYaml = (): string => EditorView.findFromDOM(document.querySelector<HTMLElement>('.cm-content')!)!.state.doc.toString()
