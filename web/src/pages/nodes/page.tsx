import { lazy } from 'react'
import type { Page } from '../../frame/pages'
import { KINDS } from '../../kube/kinds'
import { words } from './words'

const Nodes = lazy(() => import('./Nodes'))
const Node = lazy(() => import('./Node'))

export const page: Page = {
  routes: [
    { path: 'nodes', element: <Nodes /> },
    { path: 'nodes/:name', element: <Node /> },
  ],
  menu: { key: 'nodes', title: words.title, section: 'cluster', order: 10, kinds: [KINDS.Node] },
}
