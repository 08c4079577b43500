/** Names and values at the top of an object's page. */
import { Button, Descriptions, Tag } from 'antd'
import { useState, type ReactNode } from 'react'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { StateTag } from '../StateTag'
import { Moment } from '../Time'
import { words } from '../words'

export interface Entry {
  key: string
  label: ReactNode
  value: ReactNode
  /** over the whole width */
  wide?: boolean
}

/** 名称, UID, 状态, 创建时间, 项目, 标签 come by themselves; `entries` stand between. */
export function Summary({ object, entries = [], state = true }: { object: KubeObject; entries?: readonly Entry[]; state?: boolean }) {
  const w = useWords(words)
  const all: Entry[] = [
    { key: 'name', label: w('name'), value: object.metadata.name },
    { key: 'uid', label: 'UID', value: <span className="mono">{object.metadata.uid}</span> },
    ...(state ? [{ key: 'status', label: w('status'), value: <StateTag object={object} /> }] : []),
    { key: 'created', label: w('created'), value: <Moment at={object.metadata.creationTimestamp} /> },
    ...(object.metadata.namespace ? [{ key: 'project', label: w('project'), value: object.metadata.namespace }] : []),
    ...entries,
    ...(object.metadata.labels ? [{ key: 'labels', label: w('labels'), value: <Labels of={object.metadata.labels} />, wide: true }] : []),
  ]
  return (
    <Descriptions
      size="small"
      bordered
      column={{ xs: 1, sm: 1, md: 2, lg: 2, xl: 2, xxl: 3 }}
      items={all.map((entry) => ({ key: entry.key, label: entry.label, children: entry.value, span: entry.wide ? 'filled' : 1 }))}
    />
  )
}

const SHOWN = 3

export function Labels({ of }: { of: Record<string, string> | undefined }) {
  const w = useWords(words)
  const [all, setAll] = useState(false)
  const entries = Object.entries(of ?? {})
  if (entries.length === 0) return <>-</>
  return (
    <span className="row" style={{ gap: 4 }}>
      {entries.slice(0, all ? undefined : SHOWN).map(([key, value]) => (
        <Tag key={key} style={{ marginInlineEnd: 0, whiteSpace: 'normal', overflowWrap: 'anywhere' }}>
          {key}: {value}
        </Tag>
      ))}
      {entries.length > SHOWN && (
        <Button type="link" size="small" onClick={() => setAll(!all)}>
          {w(all ? 'showLess' : 'showAll')}
        </Button>
      )}
    </span>
  )
}
