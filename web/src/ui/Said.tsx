/** What the cluster said, in the person's language, with its own words within reach. */
import { Checkbox } from 'antd'
import { useState } from 'react'
import { useLanguage, useWords } from '../i18n'
import type { Cause } from '../why/table'
import { useSaid } from '../why/useSaid'
import { words } from './words'

/** The word itself stands below: documents and searches know it by that. */
export function SaidReason({ reason }: { reason: string }) {
  const said = useSaid().reason(reason)
  return (
    <div className="nowrap">
      {said}
      {said !== reason && <div className="quiet" lang="en">{reason}</div>}
    </div>
  )
}

/** The documents call conditions by their own names; what a name means stands below. */
export function ConditionType({ type }: { type: string }) {
  const said = useSaid().reason(type)
  return (
    <div className="nowrap">
      {type}
      {said !== type && <div className="quiet">{said}</div>}
    </div>
  )
}

export function SaidMessage({ message, causes = [], original, after = '' }: { message: string; causes?: readonly Cause[]; original: boolean; after?: string }) {
  const said = useSaid().stored(message, causes)
  return (
    <span className="break" style={{ display: 'block', minWidth: 200, maxWidth: 560 }} title={said === message ? undefined : message}>
      {said}
      {after}
      {original && said !== message && <span className="quiet" style={{ display: 'block' }} lang="en">{message}</span>}
    </span>
  )
}

/** Whether the original words are shown, and the box that asks; no box where they are shown anyhow. */
export function useOriginal(): [boolean, React.ReactNode] {
  const w = useWords(words)
  const translated = useLanguage() !== 'en'
  const [original, setOriginal] = useState(false)
  const box = translated ? (
    <Checkbox checked={original} onChange={(event) => setOriginal(event.target.checked)}>
      {w('originalText')}
    </Checkbox>
  ) : null
  return [original && translated, box]
}
