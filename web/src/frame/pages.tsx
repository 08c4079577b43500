/** All pages: those in src/pages, which register themselves, and those that the kinds' folders describe. */
import { lazy } from 'react'
import type { RouteObject } from 'react-router-dom'
import type { Text } from '../i18n/words'
import { KIND_PAGES, type KindPage, type Section } from '../kinds/description'
import { platformKind, type Kind } from '../kube/kinds'

/** What a page.tsx exports. */
export interface Page {
  /** below /build/:namespace/, each with a lazy element */
  routes: RouteObject[]
  menu?: MenuEntry
}

export interface MenuEntry {
  /** the address of its list */
  key: string
  title: Text
  section: Section
  /** among those of its section; tens, so that there is room between two */
  order: number
  kinds: readonly Kind[]
  /** false: Ctrl-K does not look for them */
  search?: boolean
  /** what its card on the overview says; default: the title */
  card?: string
  /** false: its objects have no states to count */
  states?: boolean
}

const KindList = lazy(() => import('../kinds/KindList'))
const KindCreate = lazy(() => import('../kinds/KindCreate'))
const KindDetail = lazy(() => import('../kinds/KindDetail'))

function described(page: KindPage): Page {
  const kinds = page.kinds.map((each) => platformKind(each.kind))
  const below = page.several ? '/:plural' : ''
  return {
    routes: [
      { path: page.key, element: <KindList key={page.key} page={page} /> },
      { path: `${page.key}/new${below}`, element: <KindCreate key={page.key} page={page} /> },
      ...(page.opens ? [] : [{ path: `${page.key}${below}/:name`, element: <KindDetail key={page.key} page={page} /> }]),
    ],
    menu: { key: page.key, title: page.title, ...page.menu, kinds, search: page.search ?? true, card: page.title.en },
  }
}

const files = import.meta.glob<{ page: Page }>('../pages/*/page.tsx', { eager: true })

export const PAGES: readonly Page[] = [...Object.values(files).map((file) => file.page), ...KIND_PAGES.map(described)]

export const ENTRIES: readonly MenuEntry[] = PAGES.flatMap(({ menu }) => menu ?? []).sort((a, b) => a.order - b.order || (a.key < b.key ? -1 : 1))

export const entriesOf = (section: Section): readonly MenuEntry[] => ENTRIES.filter((entry) => entry.section === section)
