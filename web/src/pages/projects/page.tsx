import { lazy } from 'react'
import type { Page } from '../../App'

const Projects = lazy(() => import('./Projects'))
const CreateProject = lazy(() => import('./CreateProject'))

export const page: Page = {
  routes: [
    { path: 'projects', element: <Projects /> },
    { path: 'projects/new', element: <CreateProject /> },
  ],
}
