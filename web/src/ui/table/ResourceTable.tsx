/** Every list of the console: search, filters, sort, columns chooser, paging, batch delete, row actions. */
import { MoreOutlined, SettingOutlined, SortAscendingOutlined } from '@ant-design/icons'
import { Alert, Button, Checkbox, Empty, Input, Select, type MenuProps, type TableColumnType } from 'antd'
import { useMemo, useState, type ReactNode } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import { keyOf, type KubeObject, type Listed } from '../../kube'
import { DataTable } from './DataTable'
import { DropMenu } from '../popup/DropMenu'
import { DropPanel } from '../popup/DropPanel'
import { Age } from '../Time'
import { useDelete, type Deleting } from '../useDelete'
import { useFailure } from '../useFailure'
import { words } from '../words'
import { YamlDialog } from '../yaml/YamlDialog'

export interface Column {
  key: string
  title: string
  render: (object: KubeObject) => ReactNode
  /** makes the column sortable */
  sort?: (object: KubeObject) => string | number
  width?: number
  /** not shown until chosen */
  hidden?: boolean
}

export interface Filter {
  key: string
  title: string
  value: (object: KubeObject) => string | readonly string[] | undefined
  /** how a value reads; default: as it is */
  label?: (value: string) => string
}

export interface Action {
  key: string
  label: string
  danger?: boolean
  disabled?: boolean
  onClick: () => void
}

interface Sorted {
  key: string
  order: 'ascend' | 'descend'
}

export interface ResourceTableProps {
  /** remembers the chosen columns under this name */
  id: string
  listed: Listed
  columns: readonly Column[]
  /** columns before the name, always shown: the state */
  leading?: readonly Column[]
  filters?: readonly Filter[]
  /** the address of an object's page; makes its name a link */
  linkTo?: (object: KubeObject) => string | undefined
  /** what deleting means; without it nothing can be deleted */
  deleting?: (objects: readonly KubeObject[]) => Deleting
  /** more entries of the ⋮ menu */
  rowActions?: (object: KubeObject) => Action[]
  /** a cell of buttons before ⋮, such as 打开 | 暂停 */
  rowButtons?: (object: KubeObject) => ReactNode
  /** at the right of the tools: the create button */
  extra?: ReactNode
  /** more actions for selected rows */
  batch?: (objects: readonly KubeObject[]) => ReactNode
  emptyText?: ReactNode
  defaultSort?: Sorted
  nameTitle?: string
  expandable?: (object: KubeObject) => ReactNode
  /** inside a tab, which is a panel already */
  bare?: boolean
}

const NO_COLUMNS: readonly Column[] = []
const NO_FILTERS: readonly Filter[] = []
const COLUMNS_KEY = (id: string): string => `danlu.columns.${id}`

function remembered(id: string): string[] | undefined {
  try {
    return JSON.parse(localStorage.getItem(COLUMNS_KEY(id)) ?? 'null') as string[] | undefined
  } catch {
    return undefined
  }
}

export function ResourceTable(props: ResourceTableProps) {
  const { id, listed, columns, leading = NO_COLUMNS, linkTo, deleting, rowActions, rowButtons, extra, batch, emptyText, expandable } = props
  const w = useWords(words)
  const remove = useDelete()
  const failure = useFailure()
  const [text, setText] = useState('')
  const [chosen, setChosen] = useState<Record<string, string[]>>({})
  const [selected, setSelected] = useState<readonly string[]>([])
  const [visible, setVisible] = useState<string[] | undefined>(() => remembered(id) ?? undefined)
  const [yamlOf, setYamlOf] = useState<KubeObject>()
  const [sorted, setSorted] = useState<Sorted>(props.defaultSort ?? { key: 'created', order: 'descend' })
  const own = props.filters ?? NO_FILTERS
  // Every object may have labels, so every list can be filtered by them.
  const filters = useMemo<readonly Filter[]>(() => (own.some((filter) => filter.key === 'labels') ? own : [...own, { key: 'labels', title: w('labels'), value: labelsOf }]), [own, w])
  const shownKeys = useMemo(() => visible ?? columns.filter((column) => !column.hidden).map((column) => column.key), [visible, columns])

  const rows = useMemo(() => {
    const wanted = text.trim().toLowerCase()
    const active = filters.filter((filter) => (chosen[filter.key]?.length ?? 0) > 0)
    if (!wanted && active.length === 0) return listed.items as KubeObject[]
    return listed.items.filter((object) => {
      if (wanted && !object.metadata.name.toLowerCase().includes(wanted)) return false
      return active.every((filter) => [filter.value(object) ?? []].flat().some((value) => chosen[filter.key]!.includes(value)))
    })
  }, [listed.items, text, chosen, filters])

  const selectedObjects = useMemo(() => {
    if (selected.length === 0) return []
    const keys = new Set(selected)
    return listed.items.filter((object) => keys.has(rowKey(object)))
  }, [listed.items, selected])

  const tableColumns = useMemo<TableColumnType<KubeObject>[]>(() => {
    const all: Column[] = [
      ...leading,
      {
        key: 'name',
        title: props.nameTitle ?? w('name'),
        sort: (object) => object.metadata.name,
        render: (object) => {
          const to = linkTo?.(object)
          return to ? <Link to={to}>{object.metadata.name}</Link> : object.metadata.name
        },
      },
      ...columns.filter((column) => shownKeys.includes(column.key)),
      {
        key: 'created',
        title: w('created'),
        // Newest first: "descend" on the time itself.
        sort: (object) => object.metadata.creationTimestamp ?? '',
        render: (object) => <Age since={object.metadata.creationTimestamp} />,
        width: 120,
      },
    ]
    const made: TableColumnType<KubeObject>[] = all.map((column) => ({
      key: column.key,
      title: column.title,
      className: `cell-${column.key}`,
      ...(column.width ? { width: column.width } : {}),
      ...(column.sort ? { sorter: comparing(column.sort), sortOrder: column.key === sorted.key ? sorted.order : null } : {}),
      render: (_: unknown, object: KubeObject) => column.render(object),
    }))
    made.push({
      key: 'actions',
      title: w('actions'),
      width: rowButtons ? 150 : 72,
      render: (_: unknown, object: KubeObject) => (
        <span className="row" style={{ flexWrap: 'nowrap', justifyContent: 'flex-end' }}>
          {rowButtons?.(object)}
          <RowMenu object={object} actions={rowActions?.(object) ?? []} onYaml={() => setYamlOf(object)} onDelete={deleting ? () => remove([object], deleting([object])) : undefined} />
        </span>
      ),
    })
    return made
  }, [columns, leading, shownKeys, linkTo, rowActions, rowButtons, deleting, remove, w, sorted, props.nameTitle])

  const fault = listed.error
  return (
    <div className={props.bare ? '' : 'panel'}>
      <div className="table-tools">
        <Input.Search allowClear className="table-search" placeholder={w('searchName')} aria-label={w('searchName')} value={text} onChange={(event) => setText(event.target.value)} />
        {filters.map((filter) => (
          <FilterSelect
            key={filter.key}
            filter={filter}
            items={listed.items}
            value={chosen[filter.key] ?? []}
            onChange={(values) => setChosen({ ...chosen, [filter.key]: values })}
          />
        ))}
        <ColumnsButton
          columns={columns}
          shown={shownKeys}
          onChange={(keys) => {
            setVisible(keys)
            if (keys) localStorage.setItem(COLUMNS_KEY(id), JSON.stringify(keys))
            else localStorage.removeItem(COLUMNS_KEY(id))
          }}
        />
        <SortButton
          columns={[...leading, { key: 'name', title: props.nameTitle ?? w('name') }, ...columns.filter((column) => column.sort && shownKeys.includes(column.key)), { key: 'created', title: w('created') }]}
          sorted={sorted}
          onChange={setSorted}
        />
        {selectedObjects.length > 0 && (
          <span className="row">
            <span>{w('selected', { count: selectedObjects.length })}</span>
            {batch?.(selectedObjects)}
            {deleting && (
              <Button danger onClick={() => remove(selectedObjects, { ...deleting(selectedObjects), onDeleted: () => setSelected([]) })}>
                {w('delete')}
              </Button>
            )}
          </span>
        )}
        {listed.partial && <span className="quiet" role="status">{w('loadingMore', { count: listed.items.length })}</span>}
        {extra && <span className="table-extra">{extra}</span>}
      </div>
      {fault && <Alert type="warning" showIcon style={{ marginBottom: 12 }} message={failure(fault)} />}
      <DataTable<KubeObject>
        rowKey={rowKey}
        dataSource={rows}
        columns={tableColumns}
        loading={listed.loading}
        onChange={(_, __, sorter) => {
          const { columnKey, order } = Array.isArray(sorter) ? sorter[0]! : sorter
          setSorted({ key: order ? String(columnKey) : '', order: order ?? 'ascend' })
        }}
        className="resource-table"
        rowSelection={deleting ? { selectedRowKeys: [...selected], onChange: (keys) => setSelected(keys as string[]), preserveSelectedRowKeys: true, getCheckboxProps: (object: KubeObject) => ({ 'aria-label': w('select', { name: object.metadata.name }) }) as object } : undefined!}
        {...(expandable ? { expandable: { columnTitle: <span className="visually-hidden">{w('more')}</span>, expandedRowRender: (object: KubeObject) => expandable(object) } } : {})}
        locale={{
          emptyText: listed.loading ? ' ' : <Empty image={Empty.PRESENTED_IMAGE_SIMPLE} description={listed.items.length > 0 ? w('noMatch') : (emptyText ?? w('empty'))} />,
        }}
        pagination={{
          defaultPageSize: 20,
          pageSizeOptions: [10, 20, 50, 100],
          showSizeChanger: rows.length > 10,
          hideOnSinglePage: rows.length <= 10,
          showTotal: (total, [from, to]) => w('total', { from, to, total }),
        }}
      />
      {yamlOf && <YamlDialog object={yamlOf} onClose={() => setYamlOf(undefined)} />}
    </div>
  )
}

const labelsOf = (object: KubeObject): string[] => Object.entries(object.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`)

const rowKey = (object: KubeObject): string => `${object.kind ?? ''}/${keyOf(object)}`

const comparing =
  (sort: (object: KubeObject) => string | number) =>
  (a: KubeObject, b: KubeObject): number => {
    const [left, right] = [sort(a), sort(b)]
    if (typeof left === 'number' && typeof right === 'number') return left - right
    return left < right ? -1 : left > right ? 1 : a.metadata.name < b.metadata.name ? -1 : 1
  }

function RowMenu({ object, actions, onYaml, onDelete }: { object: KubeObject; actions: Action[]; onYaml: () => void; onDelete: (() => void) | undefined }) {
  const w = useWords(words)
  const items: MenuProps['items'] = [
    ...actions.map((action) => ({ key: action.key, label: action.label, danger: action.danger ?? false, disabled: action.disabled ?? false, onClick: action.onClick })),
    { key: 'yaml', label: w('yaml'), onClick: onYaml },
    ...(onDelete ? [{ key: 'delete', label: w('delete'), danger: true, onClick: onDelete }] : []),
  ]
  return (
    <DropMenu menu={{ items }} placement="bottomRight">
      <Button type="text" icon={<MoreOutlined />} aria-label={`${w('more')}: ${object.metadata.name}`} />
    </DropMenu>
  )
}

function FilterSelect({ filter, items, value, onChange }: { filter: Filter; items: readonly KubeObject[]; value: string[]; onChange: (values: string[]) => void }) {
  // Thousands of objects are asked for their values only when somebody wants to choose.
  const [open, setOpen] = useState(false)
  const options = useMemo(() => {
    if (!open) return value.map((each) => ({ value: each, label: filter.label?.(each) ?? each }))
    const values = new Set(items.flatMap((object) => filter.value(object) ?? []))
    return [...values].sort().map((each) => ({ value: each, label: filter.label?.(each) ?? each }))
  }, [open, value, items, filter])
  return (
    <Select
      mode="multiple"
      allowClear
      maxTagCount="responsive"
      style={{ minWidth: `max(118px, ${filter.title.length + 1}ch + 40px)`, maxWidth: 260 }}
      placeholder={filter.title}
      aria-label={filter.title}
      options={options}
      value={value}
      onChange={onChange}
      onOpenChange={setOpen}
      popupMatchSelectWidth={false}
    />
  )
}

function ColumnsButton({ columns, shown, onChange }: { columns: readonly Column[]; shown: readonly string[]; onChange: (keys: string[] | undefined) => void }) {
  const w = useWords(words)
  return (
    <DropPanel
      label={w('columns')}
      placement="bottomLeft"
      content={() => (
        <div style={{ display: 'grid', gap: 6 }}>
          {columns.map((column) => (
            <Checkbox
              key={column.key}
              checked={shown.includes(column.key)}
              onChange={(event) => onChange(event.target.checked ? [...shown, column.key] : shown.filter((key) => key !== column.key))}
            >
              {column.title}
            </Checkbox>
          ))}
          <Button size="small" onClick={() => onChange(undefined)}>
            {w('resetColumns')}
          </Button>
        </div>
      )}
    >
      <Button icon={<SettingOutlined />}>{w('columns')}</Button>
    </DropPanel>
  )
}

/** 排序器: what the headers do as well, for those who look for it by its name. */
function SortButton({ columns, sorted, onChange }: { columns: readonly Pick<Column, 'key' | 'title'>[]; sorted: Sorted; onChange: (sorted: Sorted) => void }) {
  const w = useWords(words)
  const now = columns.find((column) => column.key === sorted.key)
  const items: MenuProps['items'] = columns.flatMap((column) =>
    (['ascend', 'descend'] as const).map((order) => ({
      key: `${column.key} ${order}`,
      label: `${column.title} ${order === 'ascend' ? '↑' : '↓'}`,
      onClick: () => onChange({ key: column.key, order }),
    })),
  )
  return (
    <DropMenu menu={{ items, selectedKeys: [`${sorted.key} ${sorted.order}`], style: { maxHeight: 320, overflow: 'auto' } }}>
      <Button icon={<SortAscendingOutlined />}>
        {w('sorter')}
        {now ? `: ${now.title} ${sorted.order === 'ascend' ? '↑' : '↓'}` : ''}
      </Button>
    </DropMenu>
  )
}
