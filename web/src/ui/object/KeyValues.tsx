/** Keys and values of a Secret or ConfigMap; values stay hidden until asked for, one by one. */
import { App, Button, Empty } from 'antd'
import { CopyOutlined, DownloadOutlined, EyeInvisibleOutlined, EyeOutlined } from '@ant-design/icons'
import { useState } from 'react'
import { useWords } from '../../i18n'
import { words } from '../words'

export interface Entry {
  key: string
  bytes: Uint8Array
}

/** Text, or undefined where the bytes are none. */
export function textOf(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return /[\u0000-\u0008\u000e-\u001f]/.test(text) ? undefined : text
  } catch {
    return undefined
  }
}

export function KeyValues({ entries }: { entries: readonly Entry[] }) {
  const w = useWords(words)
  if (entries.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={w('empty')} />
  return (
    <div style={{ display: 'grid', gap: 12 }}>
      {entries.map((entry) => (
        <OneValue key={entry.key} entry={entry} />
      ))}
    </div>
  )
}

function OneValue({ entry }: { entry: Entry }) {
  const w = useWords(words)
  const { message } = App.useApp()
  const [shown, setShown] = useState(false)
  const text = textOf(entry.bytes)
  const download = (): void => {
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob([entry.bytes as BlobPart]))
    link.download = entry.key
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }
  return (
    <section className="panel" style={{ margin: 0, padding: 12 }}>
      <div className="row">
        <h3 className="mono grow" style={{ margin: 0, fontSize: 14, overflowWrap: 'anywhere' }}>{entry.key}</h3>
        <span className="quiet">{w('bytes', { count: entry.bytes.length })}</span>
        <Button size="small" icon={shown ? <EyeInvisibleOutlined /> : <EyeOutlined />} onClick={() => setShown(!shown)} aria-expanded={shown}>
          {w(shown ? 'hideValue' : 'showValue')}
        </Button>
        {text !== undefined && (
          <Button size="small" icon={<CopyOutlined />} aria-label={`${w('copy')} ${entry.key}`} onClick={() => void navigator.clipboard.writeText(text).then(() => message.success(w('copied')))} />
        )}
        <Button size="small" icon={<DownloadOutlined />} aria-label={`${w('download')} ${entry.key}`} onClick={download} />
      </div>
      {shown && <pre className="mono break" style={{ margin: '8px 0 0', maxHeight: 360, overflow: 'auto', fontSize: 12 }}>{text ?? w('notText')}</pre>}
      {!shown && <div aria-hidden className="quiet" style={{ marginTop: 8, letterSpacing: 2 }}>••••••••</div>}
    </section>
  )
}
