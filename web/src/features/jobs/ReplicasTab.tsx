/** Each replica: phase, node, restarts, exit code; its log, YAML, conditions, events and a terminal one click away. */
import { Button } from 'antd'
import { useMemo, useState } from 'react'
import { useSearchParams } from 'react-router-dom'
import { useWords } from '../../i18n'
import type { TabProps } from '../../kinds/features'
import { bytes, cores, field, podSum, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/object/Conditions'
import { Dialog } from '../../ui/popup/Dialog'
import { Events } from '../../ui/object/Events'
import { LogView } from '../../ui/logs/LogView'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Action, type Column, type Filter } from '../../ui/table/ResourceTable'
import { Pair } from '../../ui/Share'
import { StateTag } from '../../ui/StateTag'
import { Labels } from '../../ui/object/Summary'
import { TerminalView } from '../../ui/terminal/TerminalView'
import { containerStatuses, stateOf, toneOf } from '../../ui/state'
import { trainingContainer, type Replica } from './reading'
import { useJob, type JobView } from './useJob'
import { words } from './words'

type Dialog = 'logs' | 'conditions' | 'events' | 'terminal'

export function ReplicasTab({ object: job, view: given }: TabProps) {
  const w = useWords(words)
  const view = useJob(job, given)
  const [, setParams] = useSearchParams()
  const [open, setOpen] = useState<{ dialog: Dialog; name: string }>()
  const namespace = job.metadata.namespace ?? ''
  // A replica that is gone is a row, too, made of what the job's status says of it.
  const { listed, of } = useMemo(() => {
    const known = new Map(view.replicas.map((replica) => [replica.name, replica]))
    const items = view.replicas.map(({ pod, name }): KubeObject => pod ?? { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace } })
    return { listed: { items, loading: false, partial: false, error: undefined }, of: (pod: KubeObject): Replica => known.get(pod.metadata.name)! }
  }, [view.replicas, namespace])
  const { columns, leading, filters } = useMemo(() => describe(of, view, w), [of, view, w])
  const pod = open && view.pods.find((each) => each.metadata.name === open.name)
  const close = (): void => setOpen(undefined)
  const actions = (object: KubeObject): Action[] => {
    const { name } = object.metadata
    const gone = !of(object).pod
    const dialog = (key: Dialog, disabled = gone): Action => ({ key, label: w(key), disabled, onClick: () => setOpen({ dialog: key, name }) })
    return [dialog('conditions'), dialog('events'), dialog('terminal', field(object, 'status.phase') !== 'Running'), { key: 'metrics', label: w('metrics'), onClick: () => setParams({ tab: 'monitor' }) }]
  }
  return (
    <>
      <ResourceTable
        bare
        id="replicas"
        listed={listed}
        leading={leading}
        columns={columns}
        filters={filters}
        linkTo={(object) => (of(object).pod ? pathOf(object, namespace) : undefined)}
        rowActions={actions}
        rowButtons={(object) => (
          <Button type="link" size="small" disabled={!of(object).pod} title={of(object).pod ? '' : w('goneHelp')} onClick={() => setOpen({ dialog: 'logs', name: object.metadata.name })} aria-label={`${w('logs')} ${object.metadata.name}`}>
            {w('logs')}
          </Button>
        )}
        defaultSort={{ key: 'rank', order: 'ascend' }}
        emptyText={w('noReplicas')}
      />
      {open && pod && (
        <Dialog title={open.name} footer={null} width="min(1100px, 96vw)" style={{ top: 40 }} onCancel={close} destroyOnHidden>
          {open.dialog === 'logs' && <LogView height="70vh" fileName={open.name} sources={[{ label: open.name, namespace, pod: open.name, uid: pod.metadata.uid, container: trainingContainer(field(pod, 'spec')) }]} />}
          {open.dialog === 'conditions' && <Conditions object={pod} />}
          {open.dialog === 'events' && <Events namespace={namespace} objects={[pod]} />}
          {open.dialog === 'terminal' && <TerminalView namespace={namespace} pod={open.name} container={trainingContainer(field(pod, 'spec'))} height="65vh" />}
        </Dialog>
      )}
    </>
  )
}

function describe(of: (pod: KubeObject) => Replica, view: JobView, w: (key: keyof typeof words) => string): { leading: Column[]; columns: Column[]; filters: Filter[] } {
  const phase = (pod: KubeObject): string => (of(pod).pod ? stateOf(pod).word : (of(pod).told?.phase ?? 'Unknown'))
  const sum = (pod: KubeObject) => podSum(pod.spec)
  const node = (pod: KubeObject): string | undefined => field(pod, 'spec.nodeName')
  const amount = (pod: KubeObject, resource: string, form: (value: number) => string) => {
    const show = (value: number | undefined): string => (value ? form(value) : '-')
    return <Pair left={show(sum(pod).requests[resource])} right={show(sum(pod).limits[resource])} />
  }
  return {
    leading: [{ key: 'phase', title: w('phase'), sort: phase, render: (pod) => (of(pod).pod ? <StateTag object={pod} /> : <StateTag state={{ word: phase(pod), tone: toneOf(phase(pod)) }} />) }],
    columns: [
      { key: 'role', title: w('taskType'), sort: (pod) => of(pod).role, render: (pod) => of(pod).role },
      { key: 'rank', title: w('rank'), sort: (pod) => of(pod).rank, render: (pod) => of(pod).rank },
      { key: 'node', title: w('node'), sort: (pod) => node(pod) ?? '', render: (pod) => node(pod) ?? '-' },
      { key: 'restarts', title: w('restarts'), sort: (pod) => restarts(of(pod), view) ?? -1, render: (pod) => restarts(of(pod), view) ?? '-' },
      { key: 'exit', title: w('exitCode'), render: (pod) => exitCodes(of(pod)) },
      { key: 'cpu', title: w('cpu'), sort: (pod) => sum(pod).requests.cpu ?? 0, render: (pod) => amount(pod, 'cpu', cores) },
      { key: 'memory', title: w('memory'), sort: (pod) => sum(pod).requests.memory ?? 0, render: (pod) => amount(pod, 'memory', bytes) },
      { key: 'labels', title: w('labels'), render: (pod) => <Labels of={pod.metadata.labels} />, hidden: true },
    ],
    filters: [
      { key: 'role', title: w('taskType'), value: (pod) => of(pod).role },
      { key: 'phase', title: w('phase'), value: phase },
      { key: 'node', title: w('node'), value: node },
    ],
  }
}

/** Where pod and service have gone, only the status of the whole type knows. */
function restarts(replica: Replica, view: JobView): number | undefined {
  if (!replica.pod && !view.replaced.has(replica.name)) return undefined
  const own = replica.pod ? containerStatuses(replica.pod).reduce((sum, each) => sum + (each.restartCount ?? 0), 0) : 0
  return (view.replaced.get(replica.name) ?? 0) + own
}

/** Of each container that has ended; a pod that is gone is told of by the job's status. */
function exitCodes(replica: Replica): string {
  const codes = replica.pod
    ? containerStatuses(replica.pod).flatMap((each) => each.state?.terminated?.exitCode ?? each.lastState?.terminated?.exitCode ?? [])
    : (replica.told?.containers ?? []).flatMap((each) => each.exitCode ?? [])
  return codes.length > 0 ? codes.join(', ') : '-'
}
