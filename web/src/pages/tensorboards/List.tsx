import { Button } from 'antd'
import { useCallback, useMemo } from 'react'
import { Link, useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList, type KubeObject } from '../../kube'
import { pathOf } from '../../ui/paths'
import { ResourceTable, type Column, type Filter } from '../../ui/ResourceTable'
import { ServedButtons } from '../../ui/ServedButtons'
import { StateTag } from '../../ui/StateTag'
import { stateOf } from '../../ui/state'
import { filesetsOf, isKept, ownerOf } from './reading'
import { words } from './words'

export default function List() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const boards = useList(KINDS.TensorBoard, { namespace })
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [
      { key: 'status', title: w('status'), sort: (each) => stateOf(each).word, render: (each) => <StateTag object={each} /> },
      { key: 'filesets', title: w('filesets'), render: (each) => <span className="break">{filesetsOf(each).join(', ') || '-'}</span> },
      { key: 'owner', title: w('owner'), render: (each) => <OwnerLink board={each} namespace={namespace} /> },
    ],
    [w, namespace],
  )
  const filters = useMemo<Filter[]>(() => [{ key: 'status', title: w('status'), value: (each) => stateOf(each).word }], [w])
  const buttons = useCallback((each: KubeObject) => <ServedButtons kind={KINDS.TensorBoard} app="tensorboard" object={each} small />, [])
  return (
    <ResourceTable
      id="tensorboards"
      listed={boards}
      columns={columns}
      filters={filters}
      linkTo={(each) => `/build/${namespace}/tensorboards/${each.metadata.name}`}
      deleting={(each) => ({ consequences: `${w('deletes')}${each.some(isKept) ? ` ${w('ownedBack')}` : ''}` })}
      rowButtons={buttons}
      emptyText={w('empty')}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/tensorboards/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}

export function OwnerLink({ board, namespace }: { board: KubeObject; namespace: string }) {
  const owner = ownerOf(board)
  if (!owner) return <>-</>
  const to = pathOf({ kind: owner.kind, metadata: { name: owner.name, namespace } }, namespace)
  return to ? <Link to={to}>{owner.name}</Link> : <>{owner.name}</>
}
