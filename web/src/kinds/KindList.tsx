/** The list of a page that a kind's folder describes: all its objects, of every kind that is on the page, in one live table. */
import { DownOutlined } from '@ant-design/icons'
import { Button } from 'antd'
import { useCallback, useMemo } from 'react'
import { Link, useNavigate } from 'react-router-dom'
import { useCrumbs } from '../frame/crumbs'
import { useNamespace } from '../frame/project'
import { useText } from '../i18n'
import { platformKind, useLists, type KubeObject } from '../kube'
import { DropMenu } from '../ui/popup/DropMenu'
import { pathOf } from '../ui/paths'
import { ResourceTable, type Column, type Filter } from '../ui/table/ResourceTable'
import { useKindActions } from './actions'
import type { KindPage, ValueSpec } from './description'
import { expandedNamed } from './expanded'
import { rendererOf } from './renderers'
import { words } from './words'

export default function KindList({ page }: { page: KindPage }) {
  const t = useText()
  const namespace = useNamespace()
  const kinds = useMemo(() => page.kinds.map((each) => platformKind(each.kind)), [page])
  const inCluster = page.menu.section === 'cluster'
  const listed = useLists(kinds, inCluster ? {} : { namespace })
  const { menu, buttons, deleting } = useKindActions(page)
  useCrumbs([{ label: t(page.title) }])

  const column = useCallback(
    (spec: ValueSpec): Column => {
      const { Show, title, sort } = rendererOf(spec)
      return {
        key: spec.key,
        title: t(spec.title ?? title) || spec.key,
        render: (object) => <Show object={object} spec={spec} namespace={namespace} />,
        hidden: spec.hidden ?? false,
        ...(spec.sort && sort ? { sort: (object: KubeObject) => sort(object, spec) } : {}),
      }
    },
    [t, namespace],
  )
  const leading = useMemo(() => (page.leading ?? []).map(column), [page, column])
  const columns = useMemo(() => (page.columns ?? [{ key: 'status', as: 'state', sort: true }]).map(column), [page, column])
  const filters = useMemo<Filter[]>(
    () =>
      [...(page.columns ?? []).filter((spec) => spec.filter), ...(page.filters ?? [])].flatMap((spec) => {
        const { filter, title, label } = rendererOf(spec)
        if (!filter) return []
        return [{ key: spec.key, title: t(spec.title ?? title) || spec.key, value: (object: KubeObject) => filter(object, spec), label: (value: string) => t(label?.(value, spec, page)) || value }]
      }),
    [page, t],
  )
  const rowButtons = useMemo(() => buttons && ((object: KubeObject) => buttons(object, true)), [buttons])
  return (
    <ResourceTable
      id={page.key}
      listed={listed}
      leading={leading}
      columns={columns}
      filters={filters}
      linkTo={(object) => pathOf(object, namespace)}
      deleting={deleting}
      rowActions={menu}
      {...(rowButtons ? { rowButtons } : {})}
      {...(page.sort ? { defaultSort: page.sort } : {})}
      {...(page.empty ? { emptyText: t(page.empty) } : {})}
      {...(page.expanded ? { expandable: expandedNamed(page.expanded) } : {})}
      extra={<CreateButton page={page} namespace={namespace} />}
    />
  )
}

function CreateButton({ page, namespace }: { page: KindPage; namespace: string }) {
  const t = useText()
  const navigate = useNavigate()
  const to = `/build/${namespace}/${page.key}/new`
  const label = t(page.create ?? words.create)
  if (!page.several) {
    return (
      <Button type="primary" onClick={() => navigate(to)}>
        {label}
      </Button>
    )
  }
  const items = page.kinds.flatMap(({ create, plural }) => (create ? [{ key: plural, label: <Link to={`${to}/${plural}`}>{t(create.label)}</Link> }] : []))
  return (
    <DropMenu menu={{ items }}>
      <Button type="primary">
        {label} <DownOutlined />
      </Button>
    </DropMenu>
  )
}
