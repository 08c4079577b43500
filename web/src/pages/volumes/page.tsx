import { lazy } from 'react'
import type { Page } from '../../App'

const List = lazy(() => import('./List'))
const Create = lazy(() => import('./Create'))
const Detail = lazy(() => import('./Detail'))

export const page: Page = {
  routes: [
    { path: 'volumes', element: <List /> },
    { path: 'volumes/new', element: <Create /> },
    { path: 'volumes/:name', element: <Detail /> },
  ],
}
