/** How values of any kind are shown; what only some kinds have is in src/features. */
import { Checkbox } from 'antd'
import { Link } from 'react-router-dom'
import { useText } from '../i18n'
import type { Text } from '../i18n/words'
import { bytes, claimNames, cores, field, podSum, type KubeObject } from '../kube'
import { ObjectLinks } from '../ui/ObjectLinks'
import { pathOf } from '../ui/paths'
import { StateTag } from '../ui/StateTag'
import { stateOf } from '../ui/state'
import { Labels } from '../ui/object/Summary'
import { Moment } from '../ui/Time'
import { useResourceName } from '../ui/useResourceName'
import type { ValueSpec } from './description'
import { table, type Renderer, type RendererProps } from './features'
import { words } from './words'

const valueOf = (object: KubeObject, spec: ValueSpec): unknown => field(object, spec.path ?? '') ?? (isText(spec.none) ? undefined : spec.none)

export const isText = (value: unknown): value is Text => typeof value === 'object' && value !== null && 'zh' in value

function Plain({ object, spec }: RendererProps) {
  const t = useText()
  if (spec.paths) return <>{spec.paths.map((path) => String(field(object, path) ?? spec.none ?? '-')).join(' / ')}</>
  const value = valueOf(object, spec)
  if (value === undefined || value === '') return <>{isText(spec.none) ? t(spec.none) : '-'}</>
  const word = spec.words?.[String(value)]
  return <span className="break">{word ? t(word) : String(value)}</span>
}

/** `0.50 / 2.00`: what the pod at `path` asks for and may use. */
const range = (resource: 'cpu' | 'memory', form: (value: number) => string): Renderer => ({
  Show: ({ object, spec }) => {
    const { requests, limits } = podSum(field(object, spec.path ?? 'spec'))
    const show = (value: number | undefined): string => (value ? form(value) : '-')
    return <>{`${show(requests[resource])} / ${show(limits[resource])}`}</>
  },
  sort: (object, spec) => podSum(field(object, spec.path ?? 'spec')).requests[resource] ?? 0,
})

function Resources({ object, spec }: RendererProps) {
  const t = useText()
  const resourceName = useResourceName()
  const found = Object.entries((field(object, spec.path ?? '') ?? {}) as Record<string, string>)
  if (found.length === 0) return <>{isText(spec.none) ? t(spec.none) : '-'}</>
  return <>{found.map(([name, value]) => <div key={name}><span className="quiet">{resourceName(name)}</span> {value}</div>)}</>
}

interface Selector {
  matchLabels?: Record<string, string>
  matchExpressions?: { key: string; operator: string; values?: string[] }[]
}

/** undefined: no selector at all; '': a selector that takes everything. */
export function selectorText(selector: Selector | undefined): string | undefined {
  if (!selector) return undefined
  const labels = Object.entries(selector.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`)
  const expressions = (selector.matchExpressions ?? []).map((each) => `${each.key} ${each.operator}${each.values?.length ? ` (${each.values.join(', ')})` : ''}`)
  return [...labels, ...expressions].join(', ')
}

function SelectorValue({ object, spec }: RendererProps) {
  const t = useText()
  const text = selectorText(field(object, spec.path ?? '') as Selector | undefined)
  return <>{text === undefined ? t(spec.words?.none) || '-' : text || t(spec.words?.all) || '-'}</>
}

/** PyTorch|TrainingJob: a narrow column breaks it between its words. */
const KindName = ({ object }: RendererProps) => (
  <>
    {(object.kind ?? '').split(/(?=TrainingJob$)/).map((part) => (
      <span key={part} className="nowrap">{part}<wbr /></span>
    ))}
  </>
)

function Owner({ object, namespace }: RendererProps) {
  const owner = object.metadata.ownerReferences?.[0]
  if (!owner) return <>-</>
  const to = pathOf({ kind: owner.kind, metadata: { name: owner.name, namespace } }, namespace)
  return to ? <Link to={to}>{owner.name}</Link> : <>{owner.name}</>
}

const labelsOf = (object: KubeObject): string[] => Object.entries(object.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)
const stateWord = (object: KubeObject): string => stateOf(object).word
const listOf = (object: KubeObject, spec: ValueSpec): string[] => ((field(object, spec.path ?? '') ?? []) as unknown[]).map(String)

const RENDERERS: Readonly<Record<string, Renderer>> = {
  text: {
    Show: Plain,
    sort: (object, spec) => {
      const value = valueOf(object, spec) ?? ''
      return typeof value === 'number' ? value : String(value)
    },
    filter: (object, spec) => {
      const value = valueOf(object, spec)
      return value === undefined || value === '' ? undefined : String(value)
    },
    label: (value, spec) => spec.words?.[value],
  },
  state: {
    title: words.status,
    Show: ({ object }) => <StateTag object={object} />,
    sort: stateWord,
    filter: stateWord,
    label: (value, _, page) => page.kinds.flatMap((each) => each.cases ?? []).find((each) => each.word.en === value)?.word,
  },
  kind: { title: words.type, Show: KindName, sort: (object) => object.kind ?? '', filter: (object) => object.kind },
  labels: { Show: ({ object }) => <Labels of={object.metadata.labels} />, filter: labelsOf },
  flag: { Show: ({ object, spec }) => <Checkbox checked={field(object, spec.path ?? '') === true} disabled aria-label={`${spec.title?.en ?? spec.key} ${object.metadata.name}`} /> },
  time: { Show: ({ object, spec }) => <Moment at={field(object, spec.path ?? '')} />, sort: (object, spec) => String(field(object, spec.path ?? '') ?? '') },
  lines: { Show: ({ object, spec }) => <>{listOf(object, spec).map((each) => <div key={each} className="break">{each}</div>)}</>, filter: listOf },
  cpu: range('cpu', cores),
  memory: range('memory', bytes),
  claims: { Show: ({ object, spec, namespace }) => <ObjectLinks objects={claimNames(field(object, spec.path ?? 'spec')).map((name) => ({ kind: 'PersistentVolumeClaim', metadata: { name } }))} namespace={namespace} /> },
  pods: { Show: ({ pods = [], namespace }) => <ObjectLinks objects={pods.map((pod) => ({ kind: 'Pod', metadata: pod.metadata }))} namespace={namespace} /> },
  owner: { Show: Owner },
  resources: { Show: Resources },
  selector: { Show: SelectorValue },
}

const files = import.meta.glob<Record<string, Renderer>>('../features/*/renderers.tsx', { eager: true, import: 'RENDERERS' })
const rendererNamed = table<Renderer>('renderer', RENDERERS, ...Object.values(files))

export const rendererOf = (spec: ValueSpec): Renderer => rendererNamed(spec.as ?? 'text')
