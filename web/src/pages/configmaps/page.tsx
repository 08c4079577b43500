import { lazy } from 'react'
import type { Page } from '../../App'

const ConfigMaps = lazy(() => import('./ConfigMaps'))
const CreateConfigMap = lazy(() => import('./CreateConfigMap'))
const ConfigMap = lazy(() => import('./ConfigMap'))

export const page: Page = {
  routes: [
    { path: 'configmaps', element: <ConfigMaps /> },
    { path: 'configmaps/new', element: <CreateConfigMap /> },
    { path: 'configmaps/:name', element: <ConfigMap /> },
  ],
}
