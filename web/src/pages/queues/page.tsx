import { lazy } from 'react'
import type { Page } from '../../App'

const Queues = lazy(() => import('./Queues'))
const CreateQueue = lazy(() => import('./CreateQueue'))
const Queue = lazy(() => import('./Queue'))

export const page: Page = {
  routes: [
    { path: 'queues', element: <Queues /> },
    { path: 'queues/new', element: <CreateQueue /> },
    { path: 'queues/:name', element: <Queue /> },
  ],
}
