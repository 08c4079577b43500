import { lazy } from 'react'
import type { Page } from '../../frame/pages'

const Overview = lazy(() => import('./Overview'))

export const page: Page = { routes: [{ path: 'overview', element: <Overview /> }] }
