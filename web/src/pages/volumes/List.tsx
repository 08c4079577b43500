import { Button } from 'antd'
import { useMemo, useState } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, quantity, useList, type KubeObject } from '../../kube'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ResourceTable, type Column, type Filter } from '../../ui/table/ResourceTable'
import { StateTag } from '../../ui/StateTag'
import { ExpandDialog } from './ExpandDialog'
import { useDeleting } from './deleting'
import { podsUsing } from './usage'
import { words as fileWords } from './files/words'
import { words } from './words'

export const sizeOf = (claim: KubeObject): string => field(claim, 'status.capacity.storage') ?? field(claim, 'spec.resources.requests.storage') ?? ''

export default function List() {
  const w = useWords(words)
  const f = useWords(fileWords)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const claims = useList(KINDS.PersistentVolumeClaim, { namespace })
  const pods = useList(KINDS.Pod, { namespace })
  const deleting = useDeleting(pods.items)
  const [expanding, setExpanding] = useState<KubeObject>()
  useCrumbs([{ label: w('title') }])

  const columns = useMemo<Column[]>(
    () => [
      { key: 'phase', title: w('phase'), sort: (claim) => field(claim, 'status.phase') ?? '', render: (claim) => <StateTag object={claim} /> },
      { key: 'size', title: w('size'), sort: (claim) => quantity(sizeOf(claim)), render: sizeOf },
      { key: 'accessModes', title: w('accessModes'), render: (claim) => ((field(claim, 'spec.accessModes') ?? []) as string[]).map((mode) => <div key={mode} className="nowrap">{mode}</div>) },
      { key: 'class', title: w('storageClass'), sort: (claim) => field(claim, 'spec.storageClassName') ?? '', render: (claim) => field(claim, 'spec.storageClassName') ?? '-' },
      { key: 'users', title: w('usedBy'), render: (claim) => <ObjectLinks objects={podsUsing(claim, pods.items)} namespace={namespace} none={w('nobody')} /> },
    ],
    [w, pods.items, namespace],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'phase', title: w('phase'), value: (claim) => field(claim, 'status.phase') },
      { key: 'class', title: w('storageClass'), value: (claim) => field(claim, 'spec.storageClassName') },
    ],
    [w],
  )
  return (
    <>
      <ResourceTable
        id="volumes"
        listed={claims}
        columns={columns}
        filters={filters}
        linkTo={(claim) => `/build/${namespace}/volumes/${claim.metadata.name}`}
        deleting={deleting}
        rowActions={(claim) => [{ key: 'files', label: f('files'), onClick: () => navigate(`/build/${namespace}/volumes/${claim.metadata.name}?tab=files`) }, { key: 'expand', label: w('expand'), onClick: () => setExpanding(claim) }]}
        emptyText={w('empty')}
        extra={
          <Button type="primary" onClick={() => navigate(`/build/${namespace}/volumes/new`)}>
            {w('create')}
          </Button>
        }
      />
      {expanding && <ExpandDialog claim={expanding} onClose={() => setExpanding(undefined)} />}
    </>
  )
}
