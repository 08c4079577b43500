/** 调度器: the cluster's own, or T9k's with a queue and a priority. */
import { InputNumber, Radio } from 'antd'
import { useWords } from '../i18n'
import { Suggest } from './Suggest'
import { read, write } from './value'
import type { WidgetProps } from './widgets'
import { words } from './words'

const FIRST_QUEUE = 'default'

export function SchedulerWidget({ id, path, object, onChange, choices = [], field }: WidgetProps) {
  const w = useWords(words)
  const chosen = read(object, path) as { queue?: string; priority?: number } | undefined
  const first = choices.includes(FIRST_QUEUE) ? FIRST_QUEUE : (choices[0] ?? FIRST_QUEUE)
  return (
    <div style={{ display: 'grid', gap: 8 }}>
      <Radio.Group
        id={id}
        aria-label={field.label.en}
        value={chosen ? 't9k' : 'default'}
        onChange={(event) => onChange(write(object, path, event.target.value === 't9k' ? { queue: first, priority: 0 } : undefined))}
        options={[
          { value: 'default', label: w('defaultScheduler') },
          { value: 't9k', label: w('t9kScheduler') },
        ]}
      />
      {chosen && (
        <div className="row" style={{ flexWrap: 'nowrap', alignItems: 'flex-start' }}>
          <label className="grow">
            {w('queue')}
            <Suggest
              style={{ width: '100%' }}
              value={chosen.queue ?? ''}
              onChange={(queue: string) => onChange(write(object, path, { ...chosen, queue }))}
              options={choices.map((value) => ({ value }))}
            />
          </label>
          <label className="grow">
            {w('priority')}
            <InputNumber style={{ width: '100%' }} min={0} max={100} precision={0} title={w('priorityHelp')} value={chosen.priority ?? 0} onChange={(priority) => onChange(write(object, path, { ...chosen, priority: priority ?? 0 }))} />
          </label>
        </div>
      )}
    </div>
  )
}
