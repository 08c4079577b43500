import { lazy } from 'react'
import type { Page } from '../../App'

const Secrets = lazy(() => import('./Secrets'))
const CreateSecret = lazy(() => import('./CreateSecret'))
const Secret = lazy(() => import('./Secret'))

export const page: Page = {
  routes: [
    { path: 'secrets', element: <Secrets /> },
    { path: 'secrets/new', element: <CreateSecret /> },
    { path: 'secrets/:name', element: <Secret /> },
  ],
}
