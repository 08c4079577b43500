/** The frame of all working pages: title bar, menu, breadcrumbs with project switch and refresh. */
import {
  AppstoreOutlined,
  CloseOutlined,
  DatabaseOutlined,
  FileAddOutlined,
  HomeOutlined,
  MenuOutlined,
  ReloadOutlined,
  SearchOutlined,
  SettingOutlined,
  ToolOutlined,
  ClusterOutlined,
} from '@ant-design/icons'
import { useQueryClient } from '@tanstack/react-query'
import { Alert, Breadcrumb, Button, Drawer, Layout, Menu, type MenuProps } from 'antd'
import { lazy, Suspense, useEffect, useMemo, useState } from 'react'
import { Link, Outlet, useLocation, useNavigate } from 'react-router-dom'
import { useText, useWords } from '../i18n'
import { refreshAll, useConnection } from '../kube'
import { useUsageSampling } from '../ui/usage/usageHistory'
import { Boundary } from './Boundary'
import { CONTENT, focusContent } from './content'
import { CrumbsContext, type Crumb } from './crumbs'
import { AccountButton, HelpButton, LanguageButton, ThemeButton } from './Preferences'
import { entriesOf } from './pages'
import { useNamespace } from './project'
import { ProjectSwitch } from './ProjectSwitch'
import { useTheme } from './theme'
import { Waiting } from './Waiting'
import { words } from './words'

const Search = lazy(() => import('./Search'))
const CreateFromYaml = lazy(() => import('../ui/yaml/CreateFromYaml'))

const SECTIONS = [
  { key: 'storage', icon: <DatabaseOutlined /> },
  { key: 'building', icon: <ToolOutlined /> },
  { key: 'auxiliary', icon: <SettingOutlined /> },
  { key: 'cluster', icon: <ClusterOutlined /> },
] as const
const TITLES = { storage: 'storage', building: 'building', auxiliary: 'auxiliary', cluster: 'clusterMenu' } as const

export default function BuildFrame() {
  const w = useWords(words)
  const t = useText()
  const namespace = useNamespace()
  const location = useLocation()
  const navigate = useNavigate()
  const chosenTheme = useTheme()
  const connection = useConnection()
  useUsageSampling(namespace)
  const queries = useQueryClient()
  const [crumbs, setCrumbs] = useState<readonly Crumb[]>([])
  const [menuOpen, setMenuOpen] = useState(false)
  const [searching, setSearching] = useState(false)
  const [creating, setCreating] = useState(false)
  const page = location.pathname.split('/')[3] ?? 'overview'

  useEffect(() => {
    const listen = (event: KeyboardEvent): void => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault()
        setSearching(true)
      }
    }
    window.addEventListener('keydown', listen)
    return () => window.removeEventListener('keydown', listen)
  }, [])

  // What was pressed may have gone with the former page.
  useEffect(() => {
    if (document.activeElement === document.body) focusContent()
  }, [location.pathname, crumbs]) // the page sets its crumbs when it is there; until then the former one may be

  const items: MenuProps['items'] = useMemo(
    () => {
        const link = (key: string, title: string) => ({ key, label: <Link to={`/build/${namespace}/${key}`}>{title}</Link> })
        return [
          { ...link('overview', w('overview')), icon: <AppstoreOutlined /> },
          ...SECTIONS.map(({ key, icon }) => ({ key, icon, label: w(TITLES[key]), children: entriesOf(key).map((entry) => link(entry.key, t(entry.title))) })),
        ]
      },
    [namespace, w, t],
  )
  const menu = (
    <Menu
      mode="inline"
      theme={chosenTheme}
      selectedKeys={[page]}
      defaultOpenKeys={SECTIONS.map(({ key }) => key)}
      items={items}
      onClick={() => setMenuOpen(false)}
      style={{ borderInlineEnd: 0 }}
    />
  )

  return (
    <Layout className="frame">
      <a href={`#${CONTENT}`} className="skip">
        {w('skip')}
      </a>
      <div className="visually-hidden" role="status">
        {crumbs.map((crumb) => crumb.label).join(' / ')}
      </div>
      <Layout.Header className="frame-title">
        <Button type="text" className="narrow-only" icon={<MenuOutlined />} aria-label={w('menu')} onClick={() => setMenuOpen(true)} />
        <Link to="/" className="frame-home" aria-label={`${w('buildConsole')}: ${w('home')}`}>
          <img src="/favicon.svg" width={24} height={24} alt="" />
          <strong>{w('buildConsole')}</strong>
        </Link>
        <span className="grow" />
        <Button type="text" icon={<SearchOutlined />} aria-label={`${w('search')} Ctrl K`} onClick={() => setSearching(true)}>
          <span className="wide-only">
            {w('search')} <kbd>Ctrl K</kbd>
          </span>
        </Button>
        <Button type="text" icon={<FileAddOutlined />} aria-label={w('fromYaml')} title={w('fromYaml')} onClick={() => setCreating(true)} />
        <LanguageButton />
        <ThemeButton />
        <HelpButton />
        <AccountButton />
      </Layout.Header>
      <Layout>
        <Layout.Sider width={208} className="frame-menu wide-only">
          <nav aria-label={w('menu')}>{menu}</nav>
        </Layout.Sider>
        <Drawer open={menuOpen} onClose={() => setMenuOpen(false)} placement="left" width={260} title={w('menu')} closeIcon={<CloseOutlined />} styles={{ body: { padding: 4 }, content: { background: 'var(--card)' } }}>
          <nav>{menu}</nav>
        </Drawer>
        <Layout>
          <div className="crumb-bar">
            <Breadcrumb
              items={[
                { title: <Link to={`/build/${namespace}/overview`} aria-label={w('overview')}><HomeOutlined /></Link> },
                ...crumbs.map((crumb) => ({ title: crumb.to ? <Link to={crumb.to}>{crumb.label}</Link> : crumb.label })),
              ]}
            />
            <span className="grow" />
            <ProjectSwitch
              namespace={namespace}
              onChoose={(name) => navigate(`/build/${name}/${page}`)}
              onManage={() => navigate(`/build/${namespace}/projects`)}
            />
            <Button
              type="text"
              icon={<ReloadOutlined />}
              aria-label={w('refresh')}
              title={w('refresh')}
              onClick={() => {
                refreshAll()
                void queries.invalidateQueries()
              }}
            />
          </div>
          {connection === 'reconnecting' && <Alert banner type="warning" message={w('reconnecting')} role="status" />}
          <Layout.Content id={CONTENT} tabIndex={-1} className="content">
            <CrumbsContext.Provider value={setCrumbs}>
              {/* Lists show no heading of their own: the crumbs above say what they are. */}
              {crumbs.length === 1 && page !== 'overview' && <h1 className="visually-hidden">{crumbs[0]!.label}</h1>}
              <Boundary at={location.pathname}>
                <Suspense fallback={<Waiting for={w('loadingPage')} />}>
                  <Outlet />
                </Suspense>
              </Boundary>
            </CrumbsContext.Provider>
          </Layout.Content>
        </Layout>
      </Layout>
      <Suspense fallback={null}>
        {searching && <Search namespace={namespace} onClose={() => setSearching(false)} />}
        {creating && <CreateFromYaml namespace={namespace} onClose={() => setCreating(false)} />}
      </Suspense>
    </Layout>
  )
}
