/**
 * Where the apps' origin sends whoever comes without a pass, for instance with the address in a Notebook's status. Any page
 * can lead a browser here, so the person is asked; the server marks the page when they typed the address themselves.
 */
import { Alert, Button, Result } from 'antd'
import { useCallback, useEffect, useState } from 'react'
import { useWords } from '../i18n'
import { kindOfPlural, messageOf, openAppAt } from '../kube'
import { Waiting } from './Waiting'
import { words } from './words'

const APP = /^\/t9k\/([^/]+)\/projects\/([^/]+)\/name\/([^/?]+)\//

export default function EnterApp() {
  const w = useWords(words)
  const path = new URLSearchParams(location.search).get('path') ?? ''
  const [, plural, project, name] = APP.exec(path) ?? []
  const [opening, setOpening] = useState(() => document.querySelector('meta[name="danlu-typed"]') !== null)
  const [problem, setProblem] = useState<string>()
  const open = useCallback(async () => {
    setOpening(true)
    try {
      location.replace((await openAppAt(path)).url)
    } catch (error) {
      setProblem(messageOf(error))
      setOpening(false)
    }
  }, [path])
  useEffect(() => {
    if (opening) void open()
    // eslint-disable-next-line react-hooks/exhaustive-deps -- once: what opens later, the button opens
  }, [])
  const app = `${kindOfPlural(plural)?.kind ?? ''} ${name ?? ''}`.trim()
  const title = w('openQuestion', { app })
  useEffect(() => {
    document.title = title
  }, [title])
  if (opening) return <Waiting for={w('opening', { app })} height="60vh" />
  return (
    <main>
      <Result
        status="info"
        title={<h1 className="question">{title}</h1>}
        subTitle={w('openMeans', { project: project ?? '' })}
        extra={
          <Button type="primary" onClick={() => void open()}>
            {w('open')}
          </Button>
        }
      >
        {problem && <Alert type="error" showIcon message={w('openRefused', { message: problem })} />}
      </Result>
    </main>
  )
}
