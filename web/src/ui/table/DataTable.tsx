/** antd's Table, whose rows become cards where the screen is narrow, and cost next to nothing while they scroll by. */
import { Table, type TableColumnType, type TableProps } from 'antd'
import { useMemo } from 'react'
import { useWords } from '../../i18n'
import { words } from '../words'

export interface DataTableProps<T> extends Omit<TableProps<T>, 'loading' | 'columns' | 'components'> {
  columns: readonly TableColumnType<T>[]
  loading?: boolean
  /** what is being loaded, for people who wait */
  what?: string
}

// Styles that make cards of rows take their roles from tables, so that they are written out.
const COMPONENTS = { table: (props: object) => <table role="table" {...props} /> }

export function DataTable<T extends object>({ columns, loading = false, what, className = '', ...rest }: DataTableProps<T>) {
  const w = useWords(words)
  const labelled = useMemo(
    () =>
      columns.map((column) => ({
        ...column,
        onCell: () => ({ role: 'cell', ...(typeof column.title === 'string' && column.title ? { 'data-label': column.title } : {}) }) as object,
        onHeaderCell: () => ({ role: 'columnheader' }) as object,
      })),
    [columns],
  )
  return (
    <Table<T>
      size="small"
      rowHoverable={false} // by style sheet instead: antd draws the whole table anew for each row that is passed
      showSorterTooltip={false}
      locale={{ emptyText: w('empty') }}
      {...rest}
      className={`data-table ${className}`}
      columns={labelled}
      components={COMPONENTS}
      onRow={(row, index) => ({ role: 'row', ...rest.onRow?.(row, index) }) as object}
      loading={loading ? { delay: 150, tip: w('loading', { what: what ?? w('list') }) } : false}
    />
  )
}
