import { Typography } from 'antd'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList, useObject } from '../../kube'
import { Events } from '../../ui/object/Events'
import { KeyValues } from '../../ui/object/KeyValues'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ObjectPage } from '../../ui/object/ObjectPage'
import { podsReferring } from '../../ui/references'
import { Summary } from '../../ui/object/Summary'
import { useDeleting } from './deleting'
import { fromBase64 } from './templates'
import { words } from './words'

export default function Secret() {
  const w = useWords(words)
  const namespace = useNamespace()
  const { name = '' } = useParams()
  const navigate = useNavigate()
  const observed = useObject(KINDS.Secret, namespace, name)
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  const list = { label: w('title'), to: `/build/${namespace}/secrets` }
  return (
    <ObjectPage
      kind={KINDS.Secret}
      name={name}
      observed={observed}
      list={list}
      stateTag={false}
      deleting={(secret) => deleting([secret])}
      onDeleted={() => navigate(list.to)}
      tabs={(secret) => [
        {
          key: 'secret',
          label: 'Secret',
          children: (
            <>
              <Summary
                object={secret}
                state={false}
                entries={[
                  { key: 'type', label: w('type'), value: String(secret.type ?? '') },
                  { key: 'immutable', label: w('immutable'), value: w(secret.immutable ? 'yes' : 'no') },
                  { key: 'users', label: w('usedBy'), value: <ObjectLinks objects={podsReferring('Secret', name, pods.items)} namespace={namespace} none={w('nobody')} /> },
                ]}
              />
              <Typography.Title level={2} style={{ fontSize: 16, margin: '16px 0 8px' }}>{w('data')}</Typography.Title>
              <KeyValues entries={Object.entries((secret.data ?? {}) as Record<string, string>).map(([key, value]) => ({ key, bytes: fromBase64(value) }))} />
              <Events namespace={namespace} objects={[secret]} />
            </>
          ),
        },
      ]}
    />
  )
}
