import { lazy } from 'react'
import type { Page } from '../../frame/pages'
import { KINDS } from '../../kube/kinds'
import { words } from './words'

const List = lazy(() => import('./List'))
const Create = lazy(() => import('./Create'))
const Detail = lazy(() => import('./Detail'))

export const page: Page = {
  routes: [
    { path: 'volumes', element: <List /> },
    { path: 'volumes/new', element: <Create /> },
    { path: 'volumes/:name', element: <Detail /> },
  ],
  menu: { key: 'volumes', title: words.title, section: 'storage', order: 10, kinds: [KINDS.PersistentVolumeClaim], card: 'PersistentVolumeClaims' },
}
