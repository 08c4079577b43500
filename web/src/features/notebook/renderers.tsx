import { Typography } from 'antd'
import { dateTime, useWords } from '../../i18n'
import type { Renderer, RendererProps } from '../../kinds/features'
import { field } from '../../kube'
import { sshCommands, useOf } from './reading'
import { words } from './words'

function Ssh({ object }: RendererProps) {
  const w = useWords(words)
  const commands = sshCommands(object)
  if (commands.length === 0) return <>{w('sshOff')}</>
  return (
    <>
      <span className="quiet">{w('sshHelp')}</span>
      {commands.map((command) => (
        <div key={command}>
          <Typography.Text code copyable>
            {command}
          </Typography.Text>
        </div>
      ))}
    </>
  )
}

/** Whether somebody uses it, and when last. */
function Use({ object }: RendererProps) {
  const w = useWords(words)
  const lastActivity: string | undefined = field(object, 'status.lastActivity')
  return <>{`${w(useOf(object))}${lastActivity ? ` · ${w('lastActivity', { time: dateTime(lastActivity) })}` : ''}`}</>
}

function Scheduler({ object, spec }: RendererProps) {
  const w = useWords(words)
  const queue: string | undefined = field(object, `${spec.path}.queue`)
  return <>{queue ? w('t9kScheduler', { queue }) : w('defaultScheduler')}</>
}

export const RENDERERS: Record<string, Renderer> = {
  'notebook-ssh': { Show: Ssh },
  'notebook-use': { Show: Use },
  't9k-scheduler': { Show: Scheduler },
}
