import { Tooltip } from 'antd'
import { useState } from 'react'
import { age, dateTime, useLanguage } from '../i18n'
import { useInterval } from '../kube'

/** Seconds since then; draws itself again as it grows. */
export function Age({ since }: { since: string | undefined }) {
  const language = useLanguage()
  const [, tick] = useState(0)
  const seconds = since ? (Date.now() - Date.parse(since)) / 1000 : 0
  useInterval(() => tick((value) => value + 1), seconds < 120 ? 1_000 : 30_000)
  if (!since) return <>-</>
  return (
    <Tooltip title={dateTime(since, language)}>
      <time dateTime={since} className="nowrap">{age(seconds, language)}</time>
    </Tooltip>
  )
}

export function Moment({ at }: { at: string | undefined | null }) {
  const language = useLanguage()
  return at ? <time dateTime={at} className="nowrap">{dateTime(at, language)}</time> : <>-</>
}
