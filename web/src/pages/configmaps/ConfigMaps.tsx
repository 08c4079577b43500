import { Button } from 'antd'
import { useMemo } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column } from '../../ui/table/ResourceTable'
import { useDeleting } from './deleting'
import { words } from './words'

export default function ConfigMaps() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const maps = useList(KINDS.ConfigMap, { namespace })
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [{ key: 'keys', title: w('keys'), render: (map) => <span className="mono break">{Object.keys({ ...(map.data as object | undefined), ...(map.binaryData as object | undefined) }).join(', ') || '-'}</span> }],
    [w],
  )
  return (
    <ResourceTable
      id="configmaps"
      listed={maps}
      columns={columns}
      linkTo={(map) => pathOf(map, namespace)}
      deleting={deleting}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/configmaps/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
