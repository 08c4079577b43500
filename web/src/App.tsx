/** Routes and what stands around every page. Pages register themselves: frame/pages.tsx. */
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { App as AntApp, ConfigProvider, theme as antTheme } from 'antd'
import enUS from 'antd/locale/en_US'
import zhCN from 'antd/locale/zh_CN'
import { lazy, Suspense, useMemo } from 'react'
import { createBrowserRouter, Navigate, RouterProvider, type RouteObject } from 'react-router-dom'
import { PAGES } from './frame/pages'
import { rememberedProject } from './frame/project'
import { SessionProvider } from './frame/session'
import { tokens, useTheme } from './frame/theme'
import { Waiting } from './frame/Waiting'
import { words } from './frame/words'
import { useLanguage, useWords } from './i18n'
import { KubeError, OIDC_CALLBACK } from './kube'
import Landing from './frame/Landing'

// Fetched while the session is asked for: most visits begin on a page inside the frame.
const frame = location.pathname.startsWith('/build') ? import('./frame/BuildFrame') : undefined
const BuildFrame = lazy(() => frame ?? import('./frame/BuildFrame'))
const EnterApp = lazy(() => import('./frame/EnterApp'))
const NotFound = lazy(() => import('./frame/NotFound'))

const routes: RouteObject[] = [
  { path: '/', element: <Landing /> },
  { path: '/build', element: <Navigate replace to={`/build/${rememberedProject()}/overview`} /> },
  {
    path: '/build/:namespace',
    element: <BuildFrame />,
    children: [
      { index: true, element: <Navigate replace to="overview" /> },
      ...PAGES.flatMap((page) => page.routes),
      { path: '*', element: <NotFound /> },
    ],
  },
  { path: '/console/apps/enter', element: <EnterApp /> },
  { path: OIDC_CALLBACK, element: <Navigate replace to="/" /> },
  { path: '*', element: <main><NotFound /></main> },
]

const newQueries = (): QueryClient =>
  new QueryClient({
    defaultOptions: {
      queries: {
        retry: (count, error) => !(error instanceof KubeError && error.code < 500) && count < 3,
        refetchOnWindowFocus: false,
        staleTime: 5_000,
      },
    },
  })

export default function App() {
  const language = useLanguage()
  const w = useWords(words)
  const chosenTheme = useTheme()
  const router = useMemo(() => createBrowserRouter(routes), [])
  const queries = useMemo(newQueries, [])
  return (
    <ConfigProvider
      locale={language === 'zh' ? zhCN : enUS}
      theme={{ ...tokens(chosenTheme), algorithm: chosenTheme === 'dark' ? antTheme.darkAlgorithm : antTheme.defaultAlgorithm }}
      button={{ autoInsertSpace: false }}
      modal={{ closable: { 'aria-label': w('close') } }}
      drawer={{ closable: { 'aria-label': w('close') } }}
    >
      <AntApp className="app" notification={{ placement: 'bottomRight' }} message={{ getContainer: () => document.getElementById('said')! }}>
        <QueryClientProvider client={queries}>
          <SessionProvider>
            <Suspense fallback={<Waiting for={w('loadingPage')} height="60vh" />}>
              <RouterProvider router={router} />
            </Suspense>
          </SessionProvider>
        </QueryClientProvider>
      </AntApp>
    </ConfigProvider>
  )
}
