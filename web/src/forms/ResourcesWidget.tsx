/** 模板: what a container asks for and may use, by the name of a size or by hand. */
import { InputNumber, Select } from 'antd'
import { useMemo, useState } from 'react'
import { useWords } from '../i18n'
import { bytes, cores, field as fieldOf, KINDS, quantity, useList } from '../kube'
import { Suggest } from './Suggest'
import { GPU, resourcesOf, templateOf, templatesFor, type Amounts, type Template } from './templates'
import { read, write } from './value'
import type { WidgetProps } from './widgets'
import { words } from './words'

const BY_HAND = ' '
const FIELDS = [
  ['cpuRequest', 'requests.cpu'],
  ['cpuLimit', 'limits.cpu'],
  ['memoryRequest', 'requests.memory'],
  ['memoryLimit', 'limits.memory'],
] as const
const SIZES = { cpu: ['500m', '1', '2', '4', '8'], memory: ['1Gi', '2Gi', '4Gi', '8Gi', '16Gi'] }

export function ResourcesWidget({ id, path, object, onChange, describedBy }: WidgetProps) {
  const w = useWords(words)
  const nodes = useList(KINDS.Node)
  const templates = useMemo(
    () => templatesFor(nodes.items.map((node) => ({ cpu: quantity(fieldOf(node, 'status.allocatable.cpu')), memory: quantity(fieldOf(node, 'status.allocatable.memory')), gpu: quantity(fieldOf(node, `status.allocatable.${GPU.replaceAll('.', '\\.')}`)) }))),
    [nodes.items],
  )
  const resources = read(object, path) as Parameters<typeof templateOf>[0]
  const chosen = templateOf(resources, templates)
  const [byHand, setByHand] = useState(false)
  const put = (at: string, value: unknown): void => onChange(write(object, `${path}.${at}`, value))
  const handmade = byHand || (resources !== undefined && !chosen)
  return (
    <div style={{ display: 'grid', gap: 8 }}>
      <Select
        id={id}
        aria-describedby={describedBy}
        allowClear
        placeholder={w('template')}
        value={handmade ? BY_HAND : (chosen?.name ?? null)}
        onChange={(name: string | undefined) => {
          setByHand(name === BY_HAND)
          if (name !== BY_HAND) onChange(write(object, path, templates.filter((each) => each.name === name).map(resourcesOf)[0]))
        }}
        options={[...templates.map((each) => ({ value: each.name, label: each.name, title: inWords(each, w) })), { value: BY_HAND, label: w('byHand') }]}
      />
      {chosen && !handmade && <Card template={chosen} />}
      {handmade && (
        <div className="form-grid">
          {FIELDS.map(([label, at]) => (
            <label key={at}>
              {w(label)}
              <Suggest style={{ width: '100%' }} value={(read(object, `${path}.${at}`) as string | undefined) ?? ''} onChange={(value: string) => put(at, value)} options={SIZES[at.endsWith('cpu') ? 'cpu' : 'memory'].map((value) => ({ value }))} />
            </label>
          ))}
          <label>
            {w('gpus')}
            <InputNumber
              style={{ width: '100%' }}
              min={0}
              precision={0}
              value={quantity(resources?.limits?.[GPU])}
              onChange={(count) => put(`limits.${GPU.replaceAll('.', '\\.')}`, count ? String(count) : undefined)}
            />
          </label>
        </div>
      )}
    </div>
  )
}

const told = ({ cpu, memory, gpu }: Amounts): string => `CPU ${cores(cpu)} · ${bytes(memory)}${gpu ? ` · ${GPU} ${gpu}` : ''}`

const inWords = (template: Template, w: (key: keyof typeof words) => string): string =>
  `${w('description')}: ${w(template.words)}\n${w('requests')}: ${told(template.requests)}\n${w('limits')}: ${told(template.limits)}${template.fitted ? `\n${w('fitted')}` : ''}`

function Card({ template }: { template: Template }) {
  const w = useWords(words)
  return (
    <div className="quiet" style={{ whiteSpace: 'pre-line' }}>
      {inWords(template, w)}
    </div>
  )
}
