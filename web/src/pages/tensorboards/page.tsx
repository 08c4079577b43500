import { lazy } from 'react'
import type { Page } from '../../App'

const List = lazy(() => import('./List'))
const Create = lazy(() => import('./Create'))
const Detail = lazy(() => import('./Detail'))

export const page: Page = {
  routes: [
    { path: 'tensorboards', element: <List /> },
    { path: 'tensorboards/new', element: <Create /> },
    { path: 'tensorboards/:name', element: <Detail /> },
  ],
}
