import { Button } from 'antd'
import { useMemo } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/table/ResourceTable'
import { useDeleting } from './deleting'
import { words } from './words'

export default function Secrets() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const secrets = useList(KINDS.Secret, { namespace })
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [
      { key: 'type', title: w('type'), sort: (secret) => String(secret.type ?? ''), render: (secret) => String(secret.type ?? '') },
      { key: 'keys', title: w('keys'), render: (secret) => <span className="mono break">{Object.keys((secret.data as object | undefined) ?? {}).join(', ') || '-'}</span> },
    ],
    [w],
  )
  const filters = useMemo<Filter[]>(() => [{ key: 'type', title: w('type'), value: (secret) => String(secret.type ?? '') }], [w])
  return (
    <ResourceTable
      id="secrets"
      listed={secrets}
      columns={columns}
      filters={filters}
      linkTo={(secret) => pathOf(secret, namespace)}
      deleting={deleting}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/secrets/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
