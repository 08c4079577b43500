import { lazy } from 'react'
import type { Page } from '../../frame/pages'
import { KINDS } from '../../kube/kinds'
import { words } from './words'

const ConfigMaps = lazy(() => import('./ConfigMaps'))
const CreateConfigMap = lazy(() => import('./CreateConfigMap'))
const ConfigMap = lazy(() => import('./ConfigMap'))

export const page: Page = {
  routes: [
    { path: 'configmaps', element: <ConfigMaps /> },
    { path: 'configmaps/new', element: <CreateConfigMap /> },
    { path: 'configmaps/:name', element: <ConfigMap /> },
  ],
  menu: { key: 'configmaps', title: words.title, section: 'auxiliary', order: 20, kinds: [KINDS.ConfigMap], card: 'ConfigMaps', states: false },
}
