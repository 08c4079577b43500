import { lazy } from 'react'
import type { Page } from '../../App'

const Pods = lazy(() => import('./Pods'))
const CreatePod = lazy(() => import('./CreatePod'))
const Pod = lazy(() => import('./Pod'))

export const page: Page = {
  routes: [
    { path: 'pods', element: <Pods /> },
    { path: 'pods/new', element: <CreatePod /> },
    { path: 'pods/:name', element: <Pod /> },
  ],
}
