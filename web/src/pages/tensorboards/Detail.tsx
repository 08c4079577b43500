import { Empty } from 'antd'
import { Link, useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/Conditions'
import { Events } from '../../ui/Events'
import { LogView } from '../../ui/LogView'
import { ObjectPage } from '../../ui/ObjectPage'
import { pathOf } from '../../ui/paths'
import { ServedButtons, servingPod } from '../../ui/ServedButtons'
import { Summary } from '../../ui/Summary'
import { useServingEvents } from '../../ui/useServing'
import { WhyBox } from '../../ui/WhyBox'
import { OwnerLink } from './List'
import { filesetsOf, isKept } from './reading'
import { words } from './words'

export default function Detail() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const { name = '' } = useParams()
  const observed = useObject(KINDS.TensorBoard, namespace, name)
  const podName = observed.object && servingPod(observed.object)
  const { object } = useObject(KINDS.Pod, namespace, podName ?? '', { enabled: podName !== undefined })
  const pod = podName === undefined ? undefined : object
  const list = { label: w('title'), to: `/build/${namespace}/tensorboards` }
  const container: string = field(pod, 'spec.containers.0.name') ?? 'tensorboard'
  return (
    <ObjectPage
      kind={KINDS.TensorBoard}
      name={name}
      observed={observed}
      list={list}
      deleting={(board) => ({ consequences: `${w('deletes')}${isKept(board) ? ` ${w('ownedBack')}` : ''}` })}
      onDeleted={() => navigate(list.to)}
      actions={(board) => <ServedButtons kind={KINDS.TensorBoard} app="tensorboard" object={board} />}
      above={(board) => <Why board={board} pods={pod ? [pod] : []} />}
      tabs={(board) => [
        {
          key: 'summary',
          label: 'TensorBoard',
          children: (
            <>
              <Summary
                object={board}
                entries={[
                  { key: 'filesets', label: w('filesets'), value: filesetsOf(board).map((each) => <div key={each} className="break">{each}</div>) },
                  { key: 'image', label: w('image'), value: <span className="break">{field(board, 'spec.image') ?? '-'}</span> },
                  { key: 'owner', label: w('owner'), value: <OwnerLink board={board} namespace={namespace} /> },
                  { key: 'pod', label: 'Pod', value: podName ? <Link to={pathOf({ kind: 'Pod', metadata: { name: podName, namespace } }, namespace) ?? ''}>{podName}</Link> : '-' },
                ]}
              />
              <Conditions object={board} />
              <Events namespace={namespace} objects={pod ? [board, pod] : [board]} />
            </>
          ),
        },
        {
          key: 'logs',
          label: w('logs'),
          children:
            pod && podName ? (
              <LogView height="60vh" fileName={name} sources={[{ label: name, namespace, pod: podName, uid: pod.metadata.uid, container }]} />
            ) : (
              <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={w('noPod')} />
            ),
        },
      ]}
    />
  )
}

function Why({ board, pods }: { board: KubeObject; pods: readonly KubeObject[] }) {
  const events = useServingEvents(board, pods)
  return <WhyBox object={board} pods={pods} events={events} />
}
