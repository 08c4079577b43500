/** Each replica: phase, node, restarts, exit code; its log, YAML, conditions, events and a terminal one click away. */
import { MoreOutlined } from '@ant-design/icons'
import { Button, Dropdown, Modal, Select, Table, Tooltip, type MenuProps } from 'antd'
import { useMemo, useState } from 'react'
import { Link, useSearchParams } from 'react-router-dom'
import { useWords } from '../../i18n'
import { bytes, cores, field, podSum, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/Conditions'
import { Events } from '../../ui/Events'
import { LogView } from '../../ui/LogView'
import { StateTag } from '../../ui/StateTag'
import { Labels } from '../../ui/Summary'
import { TerminalView } from '../../ui/TerminalView'
import { containerStatuses, toneOf } from '../../ui/state'
import { YamlDialog } from '../../ui/YamlDialog'
import { trainingContainer, type Replica } from './reading'
import type { JobView } from './useJob'
import { words } from './words'

type Dialog = 'logs' | 'yaml' | 'conditions' | 'events' | 'terminal'

export function ReplicasTab({ job, view }: { job: KubeObject; view: JobView }) {
  const w = useWords(words)
  const [, setParams] = useSearchParams()
  const [types, setTypes] = useState<string[]>([])
  const [open, setOpen] = useState<{ dialog: Dialog; name: string }>()
  const shown = useMemo(() => (types.length === 0 ? view.replicas : view.replicas.filter((each) => types.includes(each.role))), [view.replicas, types])
  const roles = [...new Set(view.replicas.map((each) => each.role))]
  const pod = open && view.pods.find((each) => each.metadata.name === open.name)
  const close = (): void => setOpen(undefined)
  const menu = (replica: Replica): MenuProps['items'] => [
    ...(['yaml', 'conditions', 'events', 'terminal'] as const).map((dialog) => ({
      key: dialog,
      label: dialog === 'yaml' ? 'YAML' : w(dialog),
      disabled: dialog === 'terminal' && field(replica.pod, 'status.phase') !== 'Running',
      onClick: () => setOpen({ dialog, name: replica.name }),
    })),
    { key: 'metrics', label: w('metrics'), onClick: () => setParams({ tab: 'monitor' }) },
  ]
  return (
    <>
      <div className="table-tools">
        <Select mode="multiple" allowClear style={{ minWidth: 160 }} placeholder={w('taskType')} aria-label={w('taskType')} value={types} onChange={setTypes} options={roles.map((value) => ({ value }))} />
      </div>
      <Table<Replica>
        size="middle"
        rowKey="name"
        dataSource={[...shown]}
        scroll={{ x: 'max-content' }}
        locale={{ emptyText: w('noReplicas') }}
        pagination={{ defaultPageSize: 20, hideOnSinglePage: shown.length <= 20, showSizeChanger: true }}
        columns={[
          { title: w('phase'), render: (_, replica) => <Phase replica={replica} /> },
          {
            title: w('name'),
            render: (_, { name, pod: found }) => (found ? <Link to={`/build/${job.metadata.namespace}/pods/${name}`}>{name}</Link> : <Tooltip title={w('goneHelp')}><span className="quiet" tabIndex={0}>{name}</span></Tooltip>),
          },
          { title: w('taskType'), dataIndex: 'role' },
          { title: w('rank'), dataIndex: 'rank' },
          { title: w('node'), render: (_, { pod: found }) => (field(found, 'spec.nodeName') as string | undefined) ?? '-' },
          { title: w('restarts'), render: (_, replica) => restarts(replica, view) },
          { title: w('exitCode'), render: (_, replica) => exitCodes(replica) },
          { title: w('cpu'), render: (_, { pod: found }) => <Amount pod={found} resource="cpu" form={cores} /> },
          { title: w('memory'), render: (_, { pod: found }) => <Amount pod={found} resource="memory" form={bytes} /> },
          { title: w('labels'), render: (_, { pod: found }) => <Labels of={found?.metadata.labels} /> },
          {
            title: w('more'),
            fixed: 'right',
            render: (_, replica) => (
              <span className="row" style={{ flexWrap: 'nowrap' }}>
                <Button type="link" size="small" disabled={!replica.pod} onClick={() => setOpen({ dialog: 'logs', name: replica.name })} aria-label={`${w('logs')} ${replica.name}`}>
                  {w('logs')}
                </Button>
                <Dropdown menu={{ items: menu(replica) }} trigger={['click']} placement="bottomRight" disabled={!replica.pod}>
                  <Button type="text" icon={<MoreOutlined />} aria-label={`${w('more')}: ${replica.name}`} />
                </Dropdown>
              </span>
            ),
          },
        ]}
      />
      {open && pod && open.dialog === 'yaml' && <YamlDialog object={pod} onClose={close} />}
      {open && pod && open.dialog !== 'yaml' && (
        <Modal open title={open.name} footer={null} width="min(1100px, 96vw)" style={{ top: 40 }} onCancel={close} destroyOnHidden>
          {open.dialog === 'logs' && (
            <LogView height="70vh" fileName={open.name} sources={[{ label: open.name, namespace: job.metadata.namespace ?? '', pod: open.name, container: trainingContainer(field(pod, 'spec')) }]} />
          )}
          {open.dialog === 'conditions' && <Conditions object={pod} />}
          {open.dialog === 'events' && <Events namespace={job.metadata.namespace} objects={[pod]} />}
          {open.dialog === 'terminal' && <TerminalView namespace={job.metadata.namespace ?? ''} pod={open.name} container={trainingContainer(field(pod, 'spec'))} height="65vh" />}
        </Modal>
      )}
    </>
  )
}

function Phase({ replica }: { replica: Replica }) {
  if (replica.pod) return <StateTag object={replica.pod} />
  const word = replica.told?.phase ?? 'Unknown'
  return <StateTag state={{ word, tone: toneOf(word) }} />
}

/** Where pod and service have gone, only the status of the whole type knows. */
const restarts = (replica: Replica, view: JobView): number | string =>
  !replica.pod && !view.replaced.has(replica.name) ? '-' : (view.replaced.get(replica.name) ?? 0) + (replica.pod ? containerStatuses(replica.pod).reduce((sum, each) => sum + (each.restartCount ?? 0), 0) : 0)

/** Of each container that has ended; a pod that is gone is told of by the job's status. */
function exitCodes(replica: Replica): string {
  const codes = replica.pod
    ? containerStatuses(replica.pod).flatMap((each) => each.state?.terminated?.exitCode ?? each.lastState?.terminated?.exitCode ?? [])
    : (replica.told?.containers ?? []).flatMap((each) => each.exitCode ?? [])
  return codes.length > 0 ? codes.join(', ') : '-'
}

function Amount({ pod, resource, form }: { pod: KubeObject | undefined; resource: string; form: (value: number) => string }) {
  const { requests, limits } = podSum(field(pod, 'spec'))
  const show = (value: number | undefined): string => (value ? form(value) : '-')
  return <span className="nowrap">{`${show(requests[resource])} / ${show(limits[resource])}`}</span>
}
