import { lazy, Suspense } from 'react'
import type { Tab } from '../../kinds/features'
import { KindTab } from './KindTab'
import { LogsTab } from './LogsTab'
import { ReplicasTab } from './ReplicasTab'
import { words } from './words'

const MonitorTab = lazy(() => import('./MonitorTab'))

export const TABS: Record<string, Tab> = {
  job: { Show: KindTab },
  replicas: { label: words.replicas, Show: ReplicasTab },
  'job-monitor': {
    label: words.monitor,
    Show: (props) => (
      <Suspense fallback={null}>
        <MonitorTab {...props} />
      </Suspense>
    ),
  },
  'job-logs': { label: words.logs, Show: LogsTab },
}
