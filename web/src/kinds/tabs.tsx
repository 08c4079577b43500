/** Tabs of an object's page that any kind with pods can have; what only some kinds have is in src/features. */
import { Empty } from 'antd'
import { useMemo } from 'react'
import { useText } from '../i18n'
import { field, type KubeObject } from '../kube'
import { LogView } from '../ui/logs/LogView'
import { pathOf } from '../ui/paths'
import { PodUsage } from '../ui/usage/PodUsage'
import { ResourceTable, type Column } from '../ui/table/ResourceTable'
import { containerStatuses, stateOf } from '../ui/state'
import { StateTag } from '../ui/StateTag'
import { TerminalView } from '../ui/terminal/TerminalView'
import { table, type SectionPart, type Tab, type TabProps } from './features'
import { words } from './words'

const isRunning = (pod: KubeObject): boolean => field(pod, 'status.phase') === 'Running'
const containerOf = (pod: KubeObject): string | undefined => field(pod, 'spec.containers.0.name')

function Stopped({ page }: Pick<TabProps, 'page'>) {
  const t = useText()
  return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={t(page.stopped ?? words.stopped)} />
}

function Pods({ object, view }: TabProps) {
  const t = useText()
  const namespace = object.metadata.namespace ?? ''
  const columns = useMemo<Column[]>(
    () => [
      { key: 'node', title: t(words.node), sort: (pod) => field(pod, 'spec.nodeName') ?? '', render: (pod) => field(pod, 'spec.nodeName') ?? '-' },
      { key: 'restarts', title: t(words.restarts), render: (pod) => containerStatuses(pod).reduce((sum, each) => sum + (each.restartCount ?? 0), 0) },
    ],
    [t],
  )
  const leading = useMemo<Column[]>(() => [{ key: 'phase', title: t(words.status), sort: (pod) => stateOf(pod).word, render: (pod) => <StateTag object={pod} /> }], [t])
  const listed = { items: view.pods, loading: false, partial: false, error: undefined }
  return <ResourceTable bare id="own-pods" listed={listed} leading={leading} columns={columns} linkTo={(pod) => pathOf(pod, namespace)} emptyText={t(words.noPods)} />
}

function Logs({ object, view, page }: TabProps) {
  const sources = view.pods.map((pod) => ({ label: pod.metadata.name, namespace: object.metadata.namespace ?? '', pod: pod.metadata.name, uid: pod.metadata.uid, container: containerOf(pod) }))
  return sources.length > 0 ? <LogView height="60vh" fileName={object.metadata.name} sources={sources} /> : <Stopped page={page} />
}

function Monitor({ view, page }: TabProps) {
  const pod = view.pods.find(isRunning)
  return pod ? <PodUsage pod={pod} /> : <Stopped page={page} />
}

function Terminal({ object, view, page }: TabProps) {
  const pod = view.pods.find(isRunning)
  return pod ? <TerminalView namespace={object.metadata.namespace ?? ''} pod={pod.metadata.name} container={containerOf(pod)} /> : <Stopped page={page} />
}

const TABS: Readonly<Record<string, Tab>> = {
  pods: { label: words.pods, Show: Pods },
  logs: { label: words.logs, Show: Logs },
  monitor: { label: words.monitor, Show: Monitor },
  terminal: { label: words.terminal, Show: Terminal },
}

const files = import.meta.glob<{ TABS?: Record<string, Tab>; SECTIONS?: Record<string, SectionPart> }>('../features/*/tabs.tsx', { eager: true })

export const tabNamed = table<Tab>('tab', TABS, ...Object.values(files).map((file) => file.TABS))
export const sectionNamed = table<SectionPart>('section', ...Object.values(files).map((file) => file.SECTIONS))
