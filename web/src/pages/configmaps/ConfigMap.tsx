import { Typography } from 'antd'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList, useObject, type KubeObject } from '../../kube'
import { Events } from '../../ui/object/Events'
import { KeyValues, type Entry } from '../../ui/object/KeyValues'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ObjectPage } from '../../ui/object/ObjectPage'
import { podsReferring } from '../../ui/references'
import { Summary } from '../../ui/object/Summary'
import { useDeleting } from './deleting'
import { words } from './words'

const entriesOf = (map: KubeObject): Entry[] => [
  ...Object.entries((map.data ?? {}) as Record<string, string>).map(([key, value]) => ({ key, bytes: new TextEncoder().encode(value) })),
  ...Object.entries((map.binaryData ?? {}) as Record<string, string>).map(([key, value]) => ({ key, bytes: Uint8Array.from(atob(value), (character) => character.charCodeAt(0)) })),
]

export default function ConfigMap() {
  const w = useWords(words)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const navigate = useNavigate()
  const observed = useObject(KINDS.ConfigMap, namespace, name)
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  const list = { label: w('title'), to: `/build/${namespace}/configmaps` }
  return (
    <ObjectPage
      kind={KINDS.ConfigMap}
      name={name}
      observed={observed}
      list={list}
      stateTag={false}
      deleting={(map) => deleting([map])}
      onDeleted={() => navigate(list.to)}
      tabs={(map) => [
        {
          key: 'configmap',
          label: 'ConfigMap',
          children: (
            <>
              <Summary object={map} state={false} entries={[{ key: 'users', label: w('usedBy'), value: <ObjectLinks objects={podsReferring('ConfigMap', name, pods.items)} namespace={namespace} none={w('nobody')} /> }]} />
              <Typography.Title level={2} style={{ fontSize: 16, margin: '16px 0 8px' }}>{w('data')}</Typography.Title>
              <KeyValues entries={entriesOf(map)} />
              <Events namespace={namespace} objects={[map]} />
            </>
          ),
        },
      ]}
    />
  )
}
