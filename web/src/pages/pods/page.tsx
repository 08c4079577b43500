import { lazy } from 'react'
import type { Page } from '../../frame/pages'
import { KINDS } from '../../kube/kinds'
import { words } from './words'

const Pods = lazy(() => import('./Pods'))
const CreatePod = lazy(() => import('./CreatePod'))
const Pod = lazy(() => import('./Pod'))

export const page: Page = {
  routes: [
    { path: 'pods', element: <Pods /> },
    { path: 'pods/new', element: <CreatePod /> },
    { path: 'pods/:name', element: <Pod /> },
  ],
  menu: { key: 'pods', title: words.title, section: 'building', order: 40, kinds: [KINDS.Pod], card: 'Pods' },
}
