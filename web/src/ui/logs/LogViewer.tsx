/** All ranks in one view: follow, search, colour and filter by rank, download. Only the lines on the screen are drawn. */
import { ArrowDownOutlined, DownloadOutlined, DownOutlined, UpOutlined } from '@ant-design/icons'
import { Button, Input, Select, Space, Switch, Typography } from 'antd'
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactNode } from 'react'
import { useWords } from '../../i18n'
import { useSaid } from '../../why/useSaid'
import { words } from '../words'
import { MergedLines } from './lines'
import { LogReader, type LogSource, type SourceState } from './reading'

export type { LogSource } from './reading'

export interface LogViewerProps {
  sources: readonly LogSource[]
  height?: string
  /** name of the downloaded file, without .log */
  fileName?: string
  tools?: ReactNode
}

const NOTES = { waiting: 'logNotStarted', between: 'logBetween', unread: 'logUnread' } as const
const LINE = 18
const OVERSCAN = 8 // lines drawn below the edge, so that a window that grows shows no gap
const LARGEST = 12_000_000 // pixels; browsers stop somewhat above
// Light on dark, at least 4.5 : 1 on the ground of the log.
const COLOURS = ['#7fb2ff', '#f2a65a', '#6fd08c', '#e58fb1', '#c4a7ff', '#5cc8c8', '#d9c657', '#ff8f85']

export default function LogViewer({ sources, height = '60vh', fileName = 'log', tools }: LogViewerProps) {
  const w = useWords(words)
  const said = useSaid()
  const key = JSON.stringify(sources)
  // eslint-disable-next-line react-hooks/exhaustive-deps -- the key says all of `sources`
  const stable = useMemo(() => sources, [key])
  const [tick, setTick] = useState(0)
  const [hidden, setHidden] = useState<readonly number[]>([])
  const [follow, setFollow] = useState(true)
  const [text, setText] = useState('')
  const [found, setFound] = useState<number[]>([])
  const [at, setAt] = useState(-1) // the match that was jumped to; none yet
  const [first, setFirst] = useState(0)
  const [rows, setRows] = useState(30)
  const box = useRef<HTMLDivElement>(null)
  const reader = useRef<LogReader>(undefined)
  const merged = useRef(new MergedLines())
  const round = useRef(0)

  useEffect(() => {
    merged.current = new MergedLines()
    round.current = 0
    const made = new LogReader(stable, () => setTick((value) => value + 1))
    reader.current = made
    setTick((value) => value + 1)
    return () => made.close()
  }, [stable])

  const shown = useMemo(() => stable.map((_, index) => index).filter((index) => !hidden.includes(index)), [stable, hidden])
  const lines = reader.current && reader.current.sources === stable ? reader.current.lines : []
  const before = merged.current.count
  const replaced = lines.length > 0 && round.current !== reader.current!.round
  if (replaced) {
    round.current = reader.current!.round
    merged.current = new MergedLines()
  }
  if (lines.length > 0) merged.current.update(lines, shown)
  const count = lines.length > 0 ? merged.current.count : 0
  const lineAt = (index: number): string => lines[merged.current.source(index)]!.text(merged.current.line(index))

  const whole = count * LINE
  const inner = Math.min(whole, LARGEST)
  const scrollTo = useCallback(
    (line: number) => {
      const view = box.current
      if (!view) return
      const most = Math.max(1, count * LINE - view.clientHeight)
      view.scrollTop = (Math.min(line * LINE, most) / most) * Math.max(0, inner - view.clientHeight)
    },
    [count, inner],
  )
  const onScroll = (): void => {
    const view = box.current!
    const range = Math.max(1, inner - view.clientHeight)
    const most = Math.max(0, whole - view.clientHeight)
    setFirst(Math.floor(((view.scrollTop / range) * most) / LINE))
    const atEnd = view.scrollTop + view.clientHeight >= inner - LINE * 1.5
    if (!atEnd && follow) setFollow(false)
    else if (atEnd && !follow) setFollow(true)
  }
  useLayoutEffect(() => {
    const view = box.current
    if (!view) return
    const measure = (): void => setRows(Math.ceil(view.clientHeight / LINE) + OVERSCAN)
    measure()
    const observer = new ResizeObserver(measure)
    observer.observe(view)
    return () => observer.disconnect()
  }, [])
  useLayoutEffect(() => {
    if (follow && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [count, follow, tick])

  // Lines that came before those on the screen push them down; the eye stays where it was.
  useLayoutEffect(() => {
    if (replaced && !follow && before > 0) scrollTo(first + count - before)
  })

  const wanted = text.trim().toLowerCase()
  useEffect(() => {
    if (!wanted) {
      setFound([])
      return
    }
    // In slices, so that a million lines do not hold the page up.
    let next = 0
    let timer: ReturnType<typeof setTimeout> | undefined
    const hits: number[] = []
    const step = (): void => {
      const end = Math.min(count, next + 20_000)
      for (; next < end; next++) if (lineAt(next).toLowerCase().includes(wanted)) hits.push(next)
      setFound([...hits])
      if (next < count) timer = setTimeout(step, 0)
    }
    timer = setTimeout(step, 120)
    return () => clearTimeout(timer)
    // eslint-disable-next-line react-hooks/exhaustive-deps -- searched again when lines or the filter change
  }, [wanted, count, shown])

  const jump = (to: number): void => {
    if (found.length === 0) return
    const index = (to + found.length) % found.length
    setAt(index)
    setFollow(false)
    scrollTo(Math.max(0, found[index]! - 5))
  }
  const back = (): void => jump(Math.max(at, 0) - 1)
  const download = (): void => {
    const parts: string[] = []
    const many = stable.length > 1
    for (let i = 0; i < count; i++) parts.push(many ? `[${stable[merged.current.source(i)]!.label}] ${lineAt(i)}\n` : `${lineAt(i)}\n`)
    const link = document.createElement('a')
    link.href = URL.createObjectURL(new Blob(parts, { type: 'text/plain' }))
    link.download = `${fileName}.log`
    link.click()
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000)
  }

  const reasonOf = ({ message, exitCode: code }: { message: string; exitCode?: number | undefined }): string => {
    const reason = said.message(said.reason(message))
    return code === undefined ? reason : w('logExit', { reason, code })
  }
  const states = reader.current?.sources === stable ? reader.current.states : []
  const notes = states.flatMap((state, index) => ('message' in state ? [w(NOTES[state.at], { what: stable[index]!.label, message: reasonOf(state) })] : []))
  const partial = lines.length > 0 && reader.current!.partial
  const live = states.some((state) => state.at === 'live')
  const ended = states.length > 0 && states.every((state) => state.at === 'ended')
  const foundSet = useMemo(() => new Set(found), [found])
  const top = box.current ? box.current.scrollTop : 0
  const offset = inner === whole ? first * LINE : top
  const last = Math.min(count, first + rows)
  return (
    <div className="log" style={{ height }}>
      <div className="table-tools">
        {tools}
        {stable.length > 1 && (
          <Select
            mode="multiple"
            allowClear
            maxTagCount="responsive"
            style={{ minWidth: 180, maxWidth: 360 }}
            placeholder={w('allRanks')}
            aria-label={w('ranks')}
            value={hidden.length === 0 ? [] : [...shown]}
            onChange={(chosen: number[]) => setHidden(chosen.length === 0 ? [] : stable.map((_, i) => i).filter((i) => !chosen.includes(i)))}
            options={stable.map((source, value) => ({ value, label: source.label }))}
          />
        )}
        <Input
          allowClear
          style={{ width: 200 }}
          placeholder={w('searchLog')}
          aria-label={w('searchLog')}
          value={text}
          onChange={(event) => {
            setText(event.target.value)
            setAt(-1)
          }}
          onKeyDown={(event) => event.key === 'Enter' && (event.shiftKey ? back() : jump(at + 1))}
        />
        {wanted && (
          <Space.Compact>
            <Button icon={<UpOutlined />} aria-label={w('previousMatch')} onClick={back} />
            <Button icon={<DownOutlined />} aria-label={w('nextMatch')} onClick={() => jump(at + 1)} />
          </Space.Compact>
        )}
        {wanted && <span className="quiet" role="status">{found.length > 0 ? w('matches', { at: Math.max(at, 0) + 1, count: found.length }) : w('noMatches')}</span>}
        <span className="grow" />
        <Typography.Text type="secondary" aria-live="off">
          {partial ? w('logLoading', { count: reader.current!.received.toLocaleString() }) : w('lines', { count: count.toLocaleString() })} · {w(wordOf(states))}
        </Typography.Text>
        <label className="row">
          <Switch size="small" checked={follow} onChange={setFollow} /> {w('follow')}
        </label>
        <Button icon={<ArrowDownOutlined />} aria-label={w('jumpToEnd')} title={w('jumpToEnd')} onClick={() => setFollow(true)} />
        <Button icon={<DownloadOutlined />} aria-label={w('download')} title={w('download')} onClick={download} disabled={count === 0} />
      </div>
      {notes.length > 0 && <p className="quiet break" role="status">{notes.slice(0, 3).join('\n')}</p>}
      <div className="log-view" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={w('logs')} aria-live="off">
        <div style={{ height: inner, position: 'relative' }}>
          {Array.from({ length: Math.max(0, last - first) }, (_, i) => {
            const index = first + i
            const source = merged.current.source(index)
            const colour = COLOURS[source % COLOURS.length]
            const mark = foundSet.has(index)
            return (
              <div key={i} className={`log-line${mark ? ' found' : ''}${found[at] === index && wanted ? ' current' : ''}`} style={{ top: offset + i * LINE }}>
                <span className="log-number">{partial ? '' : index + 1}</span>
                {stable.length > 1 && (
                  <span className="log-rank" style={{ color: colour }}>
                    {stable[source]!.label}
                  </span>
                )}
                <span>{mark ? marked(lineAt(index), wanted) : lineAt(index)}</span>
              </div>
            )
          })}
        </div>
        {count === 0 && (live || ended || notes.length === 0) && <p style={{ padding: 12 }}>{ended ? w('logEmpty') : w('logWaiting', { what: stable.map((s) => s.label).slice(0, 3).join(', ') })}</p>}
      </div>
    </div>
  )
}

/** How the whole stands: one that lives makes it live. */
function wordOf(states: readonly SourceState[]): 'logLive' | 'logEnded' | 'logStarts' | 'logFailed' | 'logConnecting' {
  const some = (...at: SourceState['at'][]): boolean => states.some((state) => at.includes(state.at))
  if (some('live')) return 'logLive'
  if (some('waiting', 'between')) return 'logStarts'
  if (some('connecting') || states.length === 0) return 'logConnecting'
  return some('unread') ? 'logFailed' : 'logEnded'
}

function marked(line: string, wanted: string): ReactNode {
  const start = line.toLowerCase().indexOf(wanted)
  if (start < 0) return line
  return (
    <>
      {line.slice(0, start)}
      <mark>{line.slice(start, start + wanted.length)}</mark>
      {line.slice(start + wanted.length)}
    </>
  )
}
