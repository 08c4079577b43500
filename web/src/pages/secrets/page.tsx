import { lazy } from 'react'
import type { Page } from '../../frame/pages'
import { KINDS } from '../../kube/kinds'
import { words } from './words'

const Secrets = lazy(() => import('./Secrets'))
const CreateSecret = lazy(() => import('./CreateSecret'))
const Secret = lazy(() => import('./Secret'))

export const page: Page = {
  routes: [
    { path: 'secrets', element: <Secrets /> },
    { path: 'secrets/new', element: <CreateSecret /> },
    { path: 'secrets/:name', element: <Secret /> },
  ],
  menu: { key: 'secrets', title: words.title, section: 'auxiliary', order: 10, kinds: [KINDS.Secret], card: 'Secrets', states: false },
}
