/** What is in a file: text, an image, or the curves of a TensorBoard log. */
import { Alert, Button, Spin } from 'antd'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../../i18n'
import { bytes, readFile, type Entry, type Place } from '../../../kube'
import { Chart } from '../../../ui/usage/Chart'
import { Dialog } from '../../../ui/popup/Dialog'
import { useSaid } from '../../../why/useSaid'
import { imageType, previewOf, textOf } from './explorer'
import { scalarsIn, type Scalars } from './tfevents'
import { words } from './words'

const MOST_TEXT = 256 * 1024
const MOST_WHOLE = 20 * 1024 * 1024

export function Preview({ place, path, entry, boardLink, onDownload, onClose }: { place: Place; path: string; entry: Entry; boardLink: string; onDownload: () => void; onClose: () => void }) {
  const w = useWords(words)
  const said = useSaid()
  const preview = previewOf(entry.name)
  const tooLarge = preview !== 'text' && entry.size > MOST_WHOLE
  const content = useQuery({
    queryKey: ['file', place, path, entry.modified],
    enabled: !tooLarge,
    retry: false,
    gcTime: 0,
    queryFn: () => readFile(place, path, preview === 'text' ? MOST_TEXT : -1),
  })
  return (
    <Dialog
      title={<span className="break">{entry.name}</span>}
      width="min(1000px, 92vw)"
      footer={
        <span className="row" style={{ justifyContent: 'flex-end' }}>
          {preview === 'events' && <Link to={boardLink}>{w('openBoard')}</Link>}
          <Button onClick={onDownload}>{w('download')}</Button>
        </span>
      }
      onCancel={onClose}
    >
      {tooLarge && <Alert type="info" showIcon message={w('tooLarge', { size: bytes(entry.size) })} />}
      {content.isLoading && (
        <Spin tip={w('reading', { name: entry.name })}>
          <div className="loading" />
        </Spin>
      )}
      {content.error && <Alert type="error" showIcon message={w('failed', { message: said.error(content.error) })} />}
      {content.data && preview === 'image' && <Picture bytes={content.data} name={entry.name} />}
      {content.data && preview === 'events' && <Curves file={content.data} />}
      {content.data && preview === 'text' && <Text read={content.data} whole={entry.size} />}
    </Dialog>
  )
}

function Text({ read, whole }: { read: Uint8Array; whole: number }) {
  const w = useWords(words)
  const text = useMemo(() => textOf(read), [read])
  if (whole === 0) return <span className="quiet">{w('nothingInIt')}</span>
  if (text === undefined) return <Alert type="info" showIcon message={w('binary')} />
  return (
    <>
      {whole > read.length && <Alert type="info" showIcon message={w('cut', { size: bytes(read.length) })} style={{ marginBottom: 8 }} />}
      <pre className="mono" tabIndex={0} style={{ maxHeight: '65vh', overflow: 'auto', margin: 0 }}>
        {text}
      </pre>
    </>
  )
}

function Picture({ bytes: content, name }: { bytes: Uint8Array; name: string }) {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    // As <img> a picture runs no script, an SVG neither.
    const made = URL.createObjectURL(new Blob([content as Uint8Array<ArrayBuffer>], { type: imageType(name) ?? '' }))
    setUrl(made)
    return () => URL.revokeObjectURL(made)
  }, [content, name])
  return url ? <img src={url} alt={name} style={{ maxWidth: '100%', maxHeight: '65vh' }} /> : null
}

function Curves({ file }: { file: Uint8Array }) {
  const w = useWords(words)
  const scalars = useMemo(() => scalarsIn(file), [file])
  if (scalars.length === 0) return <Alert type="info" showIcon message={w('noScalars')} />
  return (
    <div tabIndex={0} style={{ maxHeight: '65vh', overflow: 'auto' }}>
      {scalars.map((each) => (
        <Curve key={each.tag} scalars={each} />
      ))}
    </div>
  )
}

/** Over the steps, as TensorBoard draws them; a training that went on from a checkpoint has some of them twice. */
function Curve({ scalars: { tag, steps, values } }: { scalars: Scalars }) {
  const [times, series] = useMemo(() => {
    const order = steps.map((_, at) => at).sort((a, b) => steps[a]! - steps[b]!)
    return [order.map((at) => steps[at]!), [{ label: tag, values: order.map((at) => values[at]!) }]] as const
  }, [tag, steps, values])
  return <Chart steps title={tag} times={times} series={series} format={(value) => value.toPrecision(4)} />
}
