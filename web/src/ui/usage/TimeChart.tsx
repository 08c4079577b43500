import { useEffect, useRef } from 'react'
import UPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { useTheme } from '../../frame/theme'
import { useWords } from '../../i18n'
import { words } from '../words'

export interface Series {
  label: string
  /** one for each time; null: not known */
  values: readonly (number | null)[]
  /** dashed: what is asked for, or allowed, not what is used */
  bound?: 'request' | 'limit'
}

export interface TimeChartProps {
  title: string
  /** seconds since 1970 */
  times: readonly number[]
  series: readonly Series[]
  format?: (value: number) => string
  height?: number
  /** lines at 512Mi, 1Gi, not at 500 million */
  binary?: boolean
  /** `times` are steps of a training, and values need not begin at zero */
  steps?: boolean
}

const LIGHT = ['#1858b8', '#b4451f', '#1a7f37', '#8b3fb5', '#007a87', '#8a5a00', '#b0256a', '#4a5563']
const DARK = ['#7fb2ff', '#f2a65a', '#6fd08c', '#c4a7ff', '#5cc8c8', '#d9c657', '#e58fb1', '#a6adb8']
// Requests and limits are not one replica more.
const LIGHT_BOUNDS = { request: '#6a727d', limit: '#c4272f' }
const DARK_BOUNDS = { request: '#8f97a3', limit: '#ff7b72' }

const POWERS = Array.from({ length: 50 }, (_, power) => 2 ** power)

/** One sample has no length. */
const minuteAtLeast = ({ data }: UPlot): [number, number] => {
  const [first, last] = [data[0][0] ?? 60, data[0].at(-1) ?? 60]
  return [Math.min(first, last - 60), last]
}

const withRoom = (least: number, most: number): [number, number] => {
  const room = (most - least || Math.abs(most) || 1) * 0.08
  return [least - room, most + room]
}

const clock = (seconds: number): string => new Date(seconds * 1000).toLocaleTimeString('en-GB')

export default function TimeChart({ title, times, series, format = (value) => value.toPrecision(3), height = 220, binary = false, steps = false }: TimeChartProps) {
  const w = useWords(words)
  const host = useRef<HTMLDivElement>(null)
  const chart = useRef<UPlot>(undefined)
  const chosenTheme = useTheme()
  const formatting = useRef(format)
  formatting.current = format
  const shape = JSON.stringify(series.map((each) => [each.label, each.bound]))
  const data = [times, ...series.map((each) => each.values)] as unknown as UPlot.AlignedData

  useEffect(() => {
    const [colours, bounds] = chosenTheme === 'dark' ? [DARK, DARK_BOUNDS] : [LIGHT, LIGHT_BOUNDS]
    const font = `12px ${getComputedStyle(host.current!).fontFamily}`
    const axis = { font, stroke: chosenTheme === 'dark' ? '#a6adb8' : '#59616d', grid: { stroke: chosenTheme === 'dark' ? '#2c333d' : '#e6e9ed', width: 1 } }
    const text = (value: number | null): string => (value === null || value === undefined ? '-' : formatting.current(value))
    const across = (value: number): string => (steps ? String(value) : clock(value))
    // While nobody points at a moment, the legend tells the newest values.
    const shown = (plot: UPlot, value: number | null, at: number): number | null => value ?? (plot.cursor.idx == null ? ((plot.data[at]?.at(-1) as number | null | undefined) ?? null) : null)
    const made = new UPlot(
      {
        title,
        width: host.current!.clientWidth || 400,
        height,
        cursor: { sync: { key: 'danlu' } },
        series: [
          {
            label: w(steps ? 'step' : 'time'),
            value: (plot: UPlot, value: number | null) => {
              const at = shown(plot, value, 0)
              return at === null ? '-' : across(at)
            },
          },
          ...series.map((each, index) => ({
            label: each.label,
            stroke: each.bound ? bounds[each.bound] : colours[index % colours.length]!,
            width: each.bound ? 1.5 : 2,
            ...(each.bound ? { dash: [6, 4] } : {}),
            points: { show: (plot: UPlot) => plot.data[0].length < 3 },
            value: (plot: UPlot, value: number | null, at: number) => text(shown(plot, value, at)),
          })),
        ],
        scales: steps
          ? { x: { time: false }, y: { range: (_, least, most) => withRoom(least, most) } }
          : { x: { range: minuteAtLeast }, y: { range: (_, __, most) => [0, Math.max(most * 1.1, 1e-9)] } },
        axes: [{ ...axis, values: (_, ticks) => ticks.map(across), space: 80 }, { ...axis, size: 76, ...(binary ? { incrs: POWERS } : {}), values: (_, ticks) => ticks.map(text) }],
      },
      data,
      host.current!,
    )
    chart.current = made
    const observer = new ResizeObserver(() => made.setSize({ width: host.current?.clientWidth ?? 400, height }))
    observer.observe(host.current!)
    return () => {
      observer.disconnect()
      made.destroy()
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- data are set below
  }, [shape, chosenTheme, height, title, binary, steps, w])

  useEffect(() => chart.current?.setData(data))

  return <div className="chart" ref={host} role="img" aria-label={title} />
}
