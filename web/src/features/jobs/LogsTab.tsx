/** What all ranks write, in one view. */
import { Alert, Empty, Select } from 'antd'
import { useMemo, useState } from 'react'
import { useWords } from '../../i18n'
import type { TabProps } from '../../kinds/features'
import { field, type KubeObject } from '../../kube'
import { LogView, type LogSource } from '../../ui/logs/LogView'
import { replicaLabel, trainingContainer } from './reading'
import { useJob } from './useJob'
import { words } from './words'

export function LogsTab({ object: job, view: given }: TabProps) {
  const w = useWords(words)
  const view = useJob(job, given)
  const containers = useMemo(
    () => [...new Set(view.pods.flatMap((pod) => [...((field(pod, 'spec.initContainers') ?? []) as { name: string }[]), ...((field(pod, 'spec.containers') ?? []) as { name: string }[])].map((each) => each.name)))],
    [view.pods],
  )
  const [container, setContainer] = useState<string>()
  const sources: LogSource[] = view.replicas.flatMap((replica) => {
    if (!replica.pod) return []
    const has = containersOf(replica.pod)
    const chosen = container ?? trainingContainer(field(replica.pod, 'spec'))
    return chosen && has.includes(chosen) ? [{ label: replicaLabel(replica), namespace: job.metadata.namespace ?? '', pod: replica.name, container: chosen, uid: replica.pod.metadata.uid }] : []
  })
  if (sources.length === 0) return <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={w(view.replicas.length > 0 ? 'logsGone' : 'noLogs')} />
  const gone = view.replicas.filter((replica) => !replica.pod)
  return (
    <>
      {gone.length > 0 && <Alert type="info" showIcon style={{ marginBottom: 8 }} message={`${w('goneHelp')}: ${gone.map(replicaLabel).join(', ')}`} />}
      <LogView
        sources={sources}
        height="68vh"
        fileName={job.metadata.name}
        tools={
          containers.length > 1 ? (
            <Select aria-label={w('container')} style={{ minWidth: 140 }} value={container ?? trainingContainer({ containers: containers.map((name) => ({ name })) }) ?? null} onChange={setContainer} options={containers.map((value) => ({ value }))} />
          ) : undefined
        }
      />
    </>
  )
}

const containersOf = (pod: KubeObject): string[] =>
  [...((field(pod, 'spec.initContainers') ?? []) as { name: string }[]), ...((field(pod, 'spec.containers') ?? []) as { name: string }[])].map((each) => each.name)
