import { lazy } from 'react'
import type { Page } from '../../App'

const Jobs = lazy(() => import('./Jobs'))
const CreateJob = lazy(() => import('./CreateJob'))
const Job = lazy(() => import('./Job'))

export const page: Page = {
  routes: [
    { path: 'jobs', element: <Jobs /> },
    { path: 'jobs/new/:plural', element: <CreateJob /> },
    { path: 'jobs/:plural/:name', element: <Job /> },
  ],
}
