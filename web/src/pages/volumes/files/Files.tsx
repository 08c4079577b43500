/** Tab 文件: starts the pod that sees the volume, then shows its folders. */
import { Alert, Button, Space, Spin } from 'antd'
import { useState } from 'react'
import { useSession } from '../../../frame/session'
import { useWords } from '../../../i18n'
import { createObject, deleteObject, field, KINDS, useList, type KubeObject } from '../../../kube'
import { useEvents } from '../../../ui/object/Events'
import { WhyBox } from '../../../ui/WhyBox'
import { useSaid } from '../../../why/useSaid'
import { explorerOf, explorerPod, hasEnded, placeOf } from './explorer'
import { Folder } from './Folder'
import { words } from './words'

export default function Files({ claim }: { claim: KubeObject }) {
  const w = useWords(words)
  const said = useSaid()
  const { session } = useSession()
  const namespace = claim.metadata.namespace ?? ''
  const pods = useList(KINDS.Pod, { namespace })
  const pod = explorerOf(claim.metadata.name, pods.items)
  const [busy, setBusy] = useState(false)
  const [problem, setProblem] = useState<string>()
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    setProblem(undefined)
    try {
      await work()
    } catch (error) {
      setProblem(said.error(error))
    } finally {
      setBusy(false)
    }
  }
  const close = (): Promise<void> => run(() => deleteObject(KINDS.Pod, namespace, pod!.metadata.name, pod!.metadata.uid))
  const start = (): Promise<void> =>
    run(async () => {
      // One that has ended (its eight hours are over) makes room for the next.
      if (pod && hasEnded(pod)) await deleteObject(KINDS.Pod, namespace, pod.metadata.name, pod.metadata.uid)
      await createObject(KINDS.Pod, namespace, explorerPod(claim, session.image ?? 'danlu'))
    })
  const fault = problem && <Alert type="error" showIcon message={w('failed', { message: problem })} style={{ marginBottom: 12 }} />
  if (pod && !hasEnded(pod) && field(pod, 'status.phase') === 'Running') {
    return (
      <>
        {fault}
        <Folder
          place={placeOf(pod)}
          claim={claim}
          extra={
            <Button loading={busy} onClick={() => void close()}>
              {w('close')}
            </Button>
          }
        />
      </>
    )
  }
  if (pod?.metadata.deletionTimestamp) return <p role="status">{w('ending')}</p>
  if (pod && !hasEnded(pod)) {
    return (
      <>
        {fault}
        <Starting pod={pod} />
        <Button loading={busy} onClick={() => void close()}>
          {w('close')}
        </Button>
      </>
    )
  }
  return (
    <Space direction="vertical">
      {fault}
      <span>{w('startHelp')}</span>
      <Button type="primary" loading={busy} onClick={() => void start()}>
        {w('start')}
      </Button>
    </Space>
  )
}

function Starting({ pod }: { pod: KubeObject }) {
  const w = useWords(words)
  const events = useEvents(pod.metadata.namespace, [pod])
  return (
    <>
      <Spin tip={w('starting', { pod: pod.metadata.name })}>
        <div className="loading" />
      </Spin>
      <WhyBox object={pod} events={events.items} />
    </>
  )
}
