import { lazy } from 'react'
import type { Page } from '../../App'

const List = lazy(() => import('./List'))
const Create = lazy(() => import('./Create'))
const Detail = lazy(() => import('./Detail'))

export const page: Page = {
  routes: [
    { path: 'notebooks', element: <List /> },
    { path: 'notebooks/new', element: <Create /> },
    { path: 'notebooks/:name', element: <Detail /> },
  ],
}
