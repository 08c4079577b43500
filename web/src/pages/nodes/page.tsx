import { lazy } from 'react'
import type { Page } from '../../App'

const Nodes = lazy(() => import('./Nodes'))
const Node = lazy(() => import('./Node'))

export const page: Page = {
  routes: [
    { path: 'nodes', element: <Nodes /> },
    { path: 'nodes/:name', element: <Node /> },
  ],
}
