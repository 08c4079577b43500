/** What the kinds' folders say of how the console shows them: console.yaml; src/danlu/kinds/README.md has the format. */
import type { Text } from '../i18n/words'

export type Tone = 'good' | 'busy' | 'waiting' | 'bad' | 'quiet'
export type Section = 'storage' | 'building' | 'auxiliary' | 'cluster'

/** A column, a filter or an entry of the summary. */
export interface ValueSpec {
  key: string
  title?: Text
  /** by which name of a renderer; default: text */
  as?: string
  path?: string
  /** several numbers: 3 / 1 */
  paths?: readonly string[]
  /** what is said where there is nothing */
  none?: Text | string | number | boolean
  /** what the values are called */
  words?: Readonly<Record<string, Text>>
  sort?: boolean
  filter?: boolean
  /** not shown until chosen */
  hidden?: boolean
  /** over the whole width of the summary */
  wide?: boolean
}

export interface ActionSpec {
  do: string
  key?: string
  /** a boolean of the object that is turned on and off */
  path?: string
  /** other spellings: on, too, with this value, and taken away by what is pressed */
  older?: Readonly<Record<string, unknown>>
  on?: Text
  off?: Text
  doneOn?: Text
  doneOff?: Text
  /** when it cannot be opened */
  unless?: Readonly<Record<string, unknown>>
  /** in lists: in sight, not in the ⋮ menu */
  button?: boolean
}

export interface StateSpec {
  tone: Tone
  /** shown instead; the cluster's own word stands beside it */
  word?: string
  /** of a condition: its message is said, too */
  said?: boolean
}

/** The first that holds is the state. */
export interface CaseSpec {
  path?: string
  condition?: string
  is?: unknown
  not?: unknown
  word: Text
  tone: Tone
  reason?: Text
}

export interface RolesSpec {
  /** replicas by name, in this order */
  map?: string
  order?: readonly string[]
  /** or one after the other, each with its `type` */
  list?: string
  /** with this enabled, how many there are is only in the status */
  elastic?: string
}

export interface JobSpec {
  roles: RolesSpec
  pause: string
  debug?: string
  /** where the queue stands: a whole t9kScheduler, or two paths */
  t9k?: string
  queue?: string
  priority?: string
  /** the container that trains */
  container: string
  /** where its TensorBoard is described; `beside`: it knows of none, and one is made beside it */
  tensorboard?: string
}

export interface PageSpec {
  /** its address; default: the kind's plural */
  key?: string
  title: Text
  menu: { section: Section; order: number }
  create?: Text
  /** parts of the create page beyond form.yaml, by name */
  form?: readonly string[]
  /** parameters of the create page's address, and where they stand in the object */
  address?: Readonly<Record<string, string>>
  /** what a new object has where the form says nothing */
  always?: Readonly<Record<string, unknown>>
  empty?: Text
  deletes?: Text
  /** added to `deletes` for what belongs to another object */
  deletesOwned?: Text
  /** worked out instead, by name */
  deleting?: string
  actions?: readonly ActionSpec[]
  sort?: { key: string; order: 'ascend' | 'descend' }
  /** before the name */
  leading?: readonly ValueSpec[]
  columns?: readonly ValueSpec[]
  filters?: readonly ValueSpec[]
  /** what a row shows when it is opened, by name */
  expanded?: string
  /** entries of the first tab; false: the page's tabs begin with one that says all */
  summary?: readonly ValueSpec[] | false
  /** below the summary, by name */
  sections?: readonly string[]
  tabs?: readonly string[]
  /** said where a tab needs a pod and none runs */
  stopped?: Text
  /** false: no cause is worked out */
  why?: boolean
  /** another page of its namespace instead of one of its own */
  opens?: string
  /** false: not found by Ctrl-K */
  search?: boolean
}

export interface Description {
  /** of the folder, where form.yaml and example.yaml lie too */
  folder: string
  apiVersion: string
  kind: string
  plural: string
  namespaced?: boolean
  name: Text
  /** other kinds that the folder brings */
  also?: readonly { kind: string; plural: string; name: Text }[]
  /** the namespace where all of them live */
  home?: string
  /** where a form names one that is not there */
  absent?: Text
  /** each stands for the namespace that it lies in, where people work */
  workspace?: boolean
  /** words of status.phase, or with `conditions` of conditions, the strongest first */
  states?: Readonly<Record<string, Tone | StateSpec>>
  conditions?: boolean
  cases?: readonly CaseSpec[]
  /** how its pods are found; default: by their owner */
  pods?: { name?: string; label?: string }
  /** described here, or the name of one that several share */
  page?: PageSpec | string
  /** its entry where a page creates several kinds */
  create?: { label: Text; order: number }
  job?: JobSpec
}

type Parsed = Omit<Description, 'folder'>
const files = import.meta.glob<Parsed>('../../../src/danlu/kinds/*/console.yaml', { eager: true, import: 'default' })
const folderOf = (path: string): string => path.split('/').at(-2)!
const shared = Object.entries(files).filter(([path]) => folderOf(path).startsWith('_'))

/** One for every kind, also for those that a folder brings along: they are shown as its own is. */
export const DESCRIPTIONS: readonly Description[] = Object.entries(files)
  .filter(([path]) => !folderOf(path).startsWith('_'))
  .map(([path, said]) => ({ ...said, folder: folderOf(path) }))
  .flatMap((own) => [own, ...(own.also ?? []).map((other) => brought(own, other))])

/** Of a kind that only shares the folder the page is another's: it has none, unless they share that, too. */
function brought(own: Description, other: { kind: string; plural: string; name: Text }): Description {
  const { create: _, also: __, page, cases: ___, workspace: ____, ...rest } = own
  return { ...rest, ...other, ...(typeof page === 'string' ? { page } : {}) }
}

const byKind = new Map(DESCRIPTIONS.map((each) => [each.kind, each]))

export const describe = (kind: string | undefined): Description | undefined => byKind.get(kind ?? '')

/** A page of the console that a folder describes, with the kinds that it shows. */
export interface KindPage extends PageSpec {
  key: string
  kinds: readonly Description[]
  /** several kinds can be on it: addresses have the plural, too */
  several: boolean
}

const own = DESCRIPTIONS.flatMap((each): KindPage[] => (typeof each.page === 'object' ? [{ ...each.page, key: each.page.key ?? each.plural, kinds: [each], several: false }] : []))
const joined = shared.flatMap(([, { page }]): KindPage[] => {
  if (typeof page !== 'object') return []
  const kinds = DESCRIPTIONS.filter((each) => each.page === page.key)
  kinds.sort((a, b) => (a.create?.order ?? Infinity) - (b.create?.order ?? Infinity))
  return [{ ...page, key: page.key!, kinds, several: true }]
})

export const KIND_PAGES: readonly KindPage[] = [...own, ...joined]

export const pageOf = (kind: string | undefined): KindPage | undefined => KIND_PAGES.find((page) => page.kinds.some((each) => each.kind === kind))
