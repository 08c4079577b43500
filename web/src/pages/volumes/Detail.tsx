import { Button } from 'antd'
import { lazy, Suspense, useState } from 'react'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { Waiting } from '../../frame/Waiting'
import { useWords } from '../../i18n'
import { field, KINDS, useList, useObject, type KubeObject } from '../../kube'
import { Conditions } from '../../ui/object/Conditions'
import { Events, useEvents } from '../../ui/object/Events'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ObjectPage } from '../../ui/object/ObjectPage'
import { Summary } from '../../ui/object/Summary'
import { WhyBox } from '../../ui/WhyBox'
import { useDeleting } from './deleting'
import { ExpandDialog } from './ExpandDialog'
import { podsUsing } from './usage'
import { words as fileWords } from './files/words'
import { words } from './words'

const Files = lazy(() => import('./files/Files'))

export default function Detail() {
  const w = useWords(words)
  const f = useWords(fileWords)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const navigate = useNavigate()
  const observed = useObject(KINDS.PersistentVolumeClaim, namespace, name)
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  const [expanding, setExpanding] = useState(false)
  const list = { label: w('title'), to: `/build/${namespace}/volumes` }
  return (
    <>
      <ObjectPage
        kind={KINDS.PersistentVolumeClaim}
        name={name}
        observed={observed}
        list={list}
        deleting={(claim) => deleting([claim])}
        onDeleted={() => navigate(list.to)}
        actions={() => <Button onClick={() => setExpanding(true)}>{w('expand')}</Button>}
        above={(claim) => <Why claim={claim} />}
        tabs={(claim) => [
          {
            key: 'summary',
            label: 'PersistentVolumeClaim',
            children: (
              <>
                <Summary
                  object={claim}
                  entries={[
                    { key: 'request', label: w('request'), value: field(claim, 'spec.resources.requests.storage') },
                    { key: 'capacity', label: w('capacity'), value: field(claim, 'status.capacity.storage') ?? '-' },
                    { key: 'modes', label: w('accessModes'), value: ((field(claim, 'spec.accessModes') ?? []) as string[]).join(', ') },
                    { key: 'class', label: w('storageClass'), value: field(claim, 'spec.storageClassName') ?? '-' },
                    { key: 'volume', label: w('volume'), value: field(claim, 'spec.volumeName') ?? '-' },
                    { key: 'users', label: w('usedBy'), value: <ObjectLinks objects={podsUsing(claim, pods.items)} namespace={namespace} none={w('nobody')} /> },
                  ]}
                />
                <Conditions object={claim} />
                <Events namespace={namespace} objects={[claim]} />
              </>
            ),
          },
          {
            key: 'files',
            label: f('files'),
            children: (
              <Suspense fallback={<Waiting for={f('loadingFiles')} />}>
                <Files claim={claim} />
              </Suspense>
            ),
          },
        ]}
      />
      {expanding && observed.object && <ExpandDialog claim={observed.object} onClose={() => setExpanding(false)} />}
    </>
  )
}

function Why({ claim }: { claim: KubeObject }) {
  const events = useEvents(claim.metadata.namespace, [claim])
  return <WhyBox object={claim} events={events.items} />
}
