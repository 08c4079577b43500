/**
 * Why an object waits or failed, and what to do. Worked out by danlu.diagnose: controllers put what it found into
 * conditions, and the console's server answers `explain` for a page that knows more. Here it is only read and said.
 */
import type { Parameters, Text } from '../i18n/words'
import { conditionsOf, field, type KubeObject } from '../kube/types'
import { contract, inAll, isKnown, recognise, remedy, sentence, severityOf, type Cause } from './table'

export interface Why {
  cause: Text
  nextStep: Text
  /** `message`: what a component of Kubernetes said */
  parameters: Parameters
  failed: boolean
  /** whose last log lines tell more */
  log?: { pod: string; container: string; previous: boolean }
}

/** What a condition or an event carries. */
export function carried(told: { causes?: readonly Cause[]; metadata?: KubeObject['metadata'] }): readonly Cause[] {
  if (told.causes) return told.causes.filter(isKnown)
  try {
    const found = JSON.parse(told.metadata?.annotations?.[contract.annotation] ?? '[]') as unknown
    return Array.isArray(found) ? (found as Cause[]).filter(isKnown) : []
  } catch {
    return []
  }
}

/** What its controller found, without a question to anybody: for lists. */
export function storedCauses(object: KubeObject): readonly Cause[] {
  const images = conditionsOf(object).filter((each) => each.type === contract.substituted && each.status === 'True').flatMap((each) => carried(each as { causes?: readonly Cause[] }))
  const found = keptBy(object)
  const told = found.map((cause) => JSON.stringify(cause.params?.replaced))
  return [...found, ...images.filter((image) => !told.includes(JSON.stringify(image)))]
}

function keptBy(object: KubeObject): readonly Cause[] {
  const phase: string = field(object, 'status.phase') ?? ''
  const is = (type: string): boolean => conditionsOf(object).some((each) => each.type === type && each.status === 'True')
  if (phase === 'Succeeded' || is('Succeeded')) return []
  if (phase === 'Paused' || is('Paused')) return [{ code: 'DL-PAUSED' }]
  if (phase === 'Suspended' || is('Suspended')) {
    const idle = conditionsOf(object).filter((each) => each.type === 'Suspended').flatMap((each) => carried(each as { causes?: readonly Cause[] })).filter((each) => each.code === contract.idle)
    return idle.length > 0 ? idle : [{ code: 'DL-SUSPENDED' }]
  }
  const told = contract.telling.flatMap(([type, status]) => conditionsOf(object).filter((each) => each.type === type && each.status === status))
  const found = told.map((condition) => carried(condition as { causes?: readonly Cause[] })).find((each) => each.length > 0) ?? []
  const kept = found.filter((each) => severityOf(each) !== 'info')
  if (kept.length > 0 || phase === 'Running' || is('Running') || is('Ready')) return kept
  if (found.length > 0) return found // that it is on its way, which explains nothing
  // Another operator's words.
  const said = told.find((each) => each.message)?.message
  return said ? [byWords(said)] : []
}

/** undefined: nothing is wrong and nothing waits, as far as the object itself says. */
export const why = (object: KubeObject): Why | undefined => sayAll(storedCauses(object))

/** One answer of several causes: all are said, the first decides how bad it is. */
export function sayAll(causes: readonly Cause[]): Why | undefined {
  const known = causes.filter(isKnown)
  const [first] = known
  if (!first) return undefined
  // The words of a component are put in by whoever shows it: they may have to be said in Chinese first.
  const holder = known.find((cause) => cause.params?.message !== undefined)
  const held = (cause: Cause): Cause => (cause === holder ? { ...cause, params: { ...cause.params, message: '{message}' } } : cause)
  const log = known.map(logOf).find((each) => each !== undefined)
  return {
    cause: inAll((language) => known.map((cause) => sentence(held(cause), language)).join(language === 'zh' ? '；' : '; ')),
    nextStep: inAll((language) => capitalised(known.map((cause) => remedy(held(cause), language)).filter(Boolean).join(language === 'zh' ? '；' : '; '))),
    parameters: holder ? { message: String(holder.params!.message) } : {},
    failed: known.some((cause) => severityOf(cause) === 'error'),
    ...(log ? { log } : {}),
  }
}

function logOf(cause: Cause): Why['log'] {
  const { pod, container } = cause.params ?? {}
  return contract.ofPrograms.includes(cause.code) && pod && container ? { pod: String(pod), container: String(container), previous: cause.code === 'DL-CRASH' } : undefined
}

const byWords = (message: string): Cause => {
  const known = recognise(message)
  return known ? { ...known, params: { message, ...known.params } } : { code: 'DL-SAID', params: { message } }
}

/** What an API server refused, explained where it is known. */
export function byMessage(message: string, pod: string): Why | undefined {
  const known = recognise(message)
  return known && sayAll([{ ...known, params: { message, ...(pod ? { pod } : {}), ...known.params } }])
}

/** It stands by itself there, not after a semicolon as in a message. */
const capitalised = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
