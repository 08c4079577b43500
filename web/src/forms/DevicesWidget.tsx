/** GPU: which kind of device and how many, written among a container's limits. */
import { InputNumber } from 'antd'
import { useMemo } from 'react'
import { useWords } from '../i18n'
import { field as fieldOf, isDevice, KINDS, quantity, useList } from '../kube'
import { Suggest } from './Suggest'
import { escapeStep, read, write } from './value'
import type { WidgetProps } from './widgets'
import { words } from './words'

const USUAL = 'nvidia.com/gpu'

export function DevicesWidget({ id, path, object, onChange, describedBy }: WidgetProps) {
  const w = useWords(words)
  const nodes = useList(KINDS.Node)
  const offered = useMemo(
    () => [...new Set([...nodes.items.flatMap((node) => Object.keys((fieldOf(node, 'status.allocatable') ?? {}) as object).filter(isDevice)), USUAL])],
    [nodes.items],
  )
  const limits = (read(object, path) ?? {}) as Record<string, string | number>
  const name = Object.keys(limits).find(isDevice)
  const change = (nextName: string, count: number): void => {
    const without = name ? write(object, `${path}.${escapeStep(name)}`, undefined) : object
    onChange(count > 0 ? write(without, `${path}.${escapeStep(nextName || USUAL)}`, String(count)) : without)
  }
  const count = name ? quantity(limits[name]) : 0
  return (
    <div className="row" style={{ flexWrap: 'nowrap' }}>
      <InputNumber id={id} aria-describedby={describedBy} min={0} precision={0} value={count} onChange={(next) => change(name ?? offered[0] ?? USUAL, next ?? 0)} />
      <Suggest className="grow" aria-label={w('deviceName')} disabled={count === 0} value={name ?? offered[0] ?? USUAL} onChange={(next: string) => change(next, count)} options={offered.map((value) => ({ value }))} />
    </div>
  )
}
