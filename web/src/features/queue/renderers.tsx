import { useWords } from '../../i18n'
import type { Renderer, RendererProps } from '../../kinds/features'
import { Share } from '../../ui/Share'
import { useResourceName } from '../../ui/useResourceName'
import { formatPart, quotaParts } from './reading'
import { words } from './words'

/** What is taken of each resource that the queue limits. */
function Quota({ object }: RendererProps) {
  const w = useWords(words)
  const resourceName = useResourceName()
  const parts = quotaParts(object)
  if (parts.length === 0) return <span className="quiet">{w('noQuota')}</span>
  return (
    <>
      {parts.map((part) => (
        <div key={part.resource}>
          <div className="quiet nowrap">{resourceName(part.resource)}</div>
          <Share label={resourceName(part.resource)} used={part.used} whole={part.whole} format={formatPart(part.resource)} />
        </div>
      ))}
    </>
  )
}

export const RENDERERS: Record<string, Renderer> = { 'queue-quota': { Show: Quota } }
