import { FitAddon } from '@xterm/addon-fit'
import { Terminal as XTerm } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { Button } from 'antd'
import { useEffect, useId, useRef, useState } from 'react'
import { useWords } from '../../i18n'
import { exec, type Status } from '../../kube'
import { useSaid } from '../../why/useSaid'
import { words } from '../words'

export interface TerminalProps {
  namespace: string
  pod: string
  container?: string | undefined
  height?: string
}

const SHELL = ['sh', '-c', 'TERM=xterm-256color; export TERM; command -v bash >/dev/null 2>&1 && exec bash || exec sh']

const LEAVING_MS = 2_000

/** Tab belongs to the shell, so Escape before it says that it is meant for the page: as in the editor. */
function leavesByTab(): (event: KeyboardEvent) => boolean {
  let until = 0
  return (event) => {
    if (event.type !== 'keydown' || event.key === 'Shift') return true
    if (event.key === 'Tab' && Date.now() < until) return false // the shell does not get it, the page does
    until = event.key === 'Escape' ? Date.now() + LEAVING_MS : 0
    return true
  }
}

export default function Terminal({ namespace, pod, container, height = '60vh' }: TerminalProps) {
  const w = useWords(words)
  const host = useRef<HTMLDivElement>(null)
  const help = useId()
  const said = useSaid()
  const [ended, setEnded] = useState<{ status: Status | undefined }>()
  const [round, setRound] = useState(0)
  const what = container ? `${pod} / ${container}` : pod

  useEffect(() => {
    setEnded(undefined)
    const terminal = new XTerm({ fontSize: 13, cursorBlink: true, scrollback: 10_000, theme: { background: '#12161c' }, screenReaderMode: false })
    const fit = new FitAddon()
    terminal.loadAddon(fit)
    terminal.attachCustomKeyEventHandler(leavesByTab())
    terminal.open(host.current!)
    terminal.textarea?.setAttribute('aria-label', `${w('terminal')} ${what}`)
    terminal.textarea?.setAttribute('aria-describedby', help)
    fit.fit()
    terminal.write(`${w('connectingTo', { what })}\r\n`)
    const session = exec(namespace, pod, {
      container,
      command: SHELL,
      tty: true,
      onOpen: () => {
        terminal.clear()
        session.resize(terminal.cols, terminal.rows)
        terminal.focus()
      },
      onOutput: (bytes) => terminal.write(bytes),
      onEnd: (status) => setEnded({ status }),
    })
    const typed = terminal.onData((data) => session.send(data))
    const sized = terminal.onResize(({ cols, rows }) => session.resize(cols, rows))
    const observer = new ResizeObserver(() => fit.fit())
    observer.observe(host.current!)
    return () => {
      observer.disconnect()
      typed.dispose()
      sized.dispose()
      session.close()
      terminal.dispose()
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- a change of language must not end the session
  }, [namespace, pod, container, round])

  const reasonOf = (status: Status | undefined): string => {
    const code = status?.status === 'Success' ? 0 : status?.details?.causes?.find((cause) => cause.reason === 'ExitCode')?.message
    if (code !== undefined) return w('terminalExit', { code })
    return status?.message ? said.message(status.message) : w('terminalBroken')
  }
  return (
    <div style={{ height, display: 'flex', flexDirection: 'column', gap: 8 }}>
      {ended !== undefined && (
        <div className="row" role="status">
          <span className="break">{w('terminalEnded', { message: reasonOf(ended.status) })}</span>
          <Button size="small" onClick={() => setRound(round + 1)}>
            {w('reconnect')}
          </Button>
        </div>
      )}
      <div className="terminal grow" ref={host} aria-label={`${w('terminal')} ${what}`} role="region" />
      <div id={help} className="quiet">{w('leaveTerminal')}</div>
    </div>
  )
}
