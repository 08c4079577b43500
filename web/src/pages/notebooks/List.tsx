import { Button, Checkbox } from 'antd'
import { useCallback, useMemo } from 'react'
import { useNavigate } from 'react-router-dom'
import { useCrumbs } from '../../frame/crumbs'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { field, KINDS, useList, type KubeObject } from '../../kube'
import { ObjectLinks } from '../../ui/ObjectLinks'
import { ResourceTable, type Column, type Filter } from '../../ui/ResourceTable'
import { ServedButtons } from '../../ui/ServedButtons'
import { StateTag } from '../../ui/StateTag'
import { stateOf } from '../../ui/state'
import { claimNamed, claimsOf, imageOf, rangesOf, TYPES } from './reading'
import { words } from './words'

export default function List() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  const notebooks = useList(KINDS.Notebook, { namespace })
  useCrumbs([{ label: w('title') }])
  const columns = useMemo<Column[]>(
    () => [
      { key: 'status', title: w('status'), sort: (each) => stateOf(each).word, render: (each) => <StateTag object={each} /> },
      { key: 'image', title: w('image'), render: (each) => <span className="break">{imageOf(each)}</span> },
      { key: 'cpu', title: 'CPU', render: (each) => rangesOf(each).cpu },
      { key: 'memory', title: w('memory'), render: (each) => rangesOf(each).memory },
      { key: 'ssh', title: 'SSH', render: (each) => <Checkbox checked={field(each, 'spec.ssh.enabled') === true} disabled aria-label={`SSH ${each.metadata.name}`} /> },
      { key: 'volumes', title: w('volumes'), render: (each) => <ObjectLinks objects={claimsOf(each).map(claimNamed)} namespace={namespace} /> },
    ],
    [w, namespace],
  )
  const filters = useMemo<Filter[]>(
    () => [
      { key: 'status', title: w('status'), value: (each) => stateOf(each).word },
      { key: 'type', title: w('type'), value: (each) => field(each, 'spec.type'), label: (value) => TYPES[value] ?? value },
    ],
    [w],
  )
  const buttons = useCallback((each: KubeObject) => <ServedButtons kind={KINDS.Notebook} app="notebook" object={each} small />, [])
  return (
    <ResourceTable
      id="notebooks"
      listed={notebooks}
      columns={columns}
      filters={filters}
      linkTo={(each) => `/build/${namespace}/notebooks/${each.metadata.name}`}
      deleting={() => ({ consequences: w('deletes') })}
      rowButtons={buttons}
      emptyText={w('empty')}
      extra={
        <Button type="primary" onClick={() => navigate(`/build/${namespace}/notebooks/new`)}>
          {w('create')}
        </Button>
      }
    />
  )
}
