import { useMemo } from 'react'
import { CreatePage } from '../../forms/CreatePage'
import type { Overrides } from '../../forms/ObjectForm'
import { Widget } from '../../forms/widgets'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { KINDS, useList } from '../../kube'
import { form } from './form'
import { words } from './words'

export default function Create() {
  const w = useWords(words)
  const namespace = useNamespace()
  const classes = useList(KINDS.StorageClass)
  const overrides = useMemo<Overrides>(
    () => ({ 'spec.storageClassName': (props) => <Widget {...props} choices={classes.items.map((each) => each.metadata.name)} /> }),
    [classes.items],
  )
  return (
    <CreatePage
      kind={KINDS.PersistentVolumeClaim}
      namespace={namespace}
      form={form}
      title={w('createTitle')}
      list={{ label: w('title'), to: `/build/${namespace}/volumes` }}
      overrides={overrides}
    />
  )
}
