import { useSyncExternalStore } from 'react'
import { ago, dateTime, useLanguage } from '../i18n'

// One clock for all ages of a page; each draws itself only when its words change.
const listeners = new Set<() => void>()
let clock: ReturnType<typeof setInterval> | undefined

function everySecond(listener: () => void): () => void {
  listeners.add(listener)
  clock ??= setInterval(() => {
    if (!document.hidden) listeners.forEach((each) => each())
  }, 1_000)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(clock)
    clock = undefined
  }
}

/** How long ago, as people say it. */
export function Age({ since }: { since: string | undefined }) {
  const language = useLanguage()
  const words = useSyncExternalStore(everySecond, () => (since ? ago((Date.now() - Date.parse(since)) / 1000, language) : '-'))
  if (!since) return <>-</>
  return (
    <time dateTime={since} className="nowrap" title={dateTime(since, language)}>
      {words}
    </time>
  )
}

export function Moment({ at }: { at: string | undefined | null }) {
  const language = useLanguage()
  return at ? <time dateTime={at} className="nowrap">{dateTime(at, language)}</time> : <>-</>
}
