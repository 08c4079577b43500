/**
 * Causes in the person's language, of the tables that Python has them from (src/danlu/diagnose, made by
 * scripts/generate-diagnosis). Pure. What is worked out from pods and events is worked out there, not here.
 */
import causesTable from '../../../src/danlu/diagnose/tables/causes.json'
import { tailOf } from '../kube/tail'
import { LANGUAGES, type Language, type Text } from '../i18n/words'

export type Value = string | number | { code: string; params?: Params }
export type Params = Readonly<Record<string, Value>>

export interface Cause {
  code: string
  params?: Params
  /** Kind/name */
  about?: string
  /** so many lines at the end of the message are a program's own */
  lines?: number
}

export type Severity = 'error' | 'waiting' | 'warning' | 'info'

interface Template extends Text {
  readonly severity: Severity
  readonly remedy?: Text
}

/** What a component of Kubernetes said, in the person's language. */
export type Say = (message: string) => string

const templates = causesTable.causes as unknown as Readonly<Record<string, Template>>
const signs = causesTable.signs.map(({ code, pattern, params }) => ({ code, pattern: new RegExp(pattern, 'g'), params: params as readonly string[] }))

/** What Python has, too: src/danlu/diagnose/contract.py says what each is. */
export const { contract } = causesTable

/** Anybody may write what is no cause at all. */
export const isKnown = (cause: Cause | null): boolean => typeof cause?.code === 'string' && Object.hasOwn(templates, cause.code)
export const severityOf = (cause: Cause): Severity => templates[cause.code]?.severity ?? 'info'

/** `inner`: so many causes within the cause are said. */
export function sentence(cause: Cause, language: Language, say: Say = (message) => message, inner = contract.nestedCauses): string {
  const text = fill(templates[cause.code]?.[language] ?? '', cause.params ?? {}, language, say, inner)
  return cause.params?.more ? text + fill((causesTable.more as Text)[language], cause.params, language, say, inner) : text
}

export const remedy = (cause: Cause, language: Language, say: Say = (message) => message, inner = contract.nestedCauses): string =>
  fill(templates[cause.code]?.remedy?.[language] ?? '', cause.params ?? {}, language, say, inner)

/** The sentence and what mends it, as it stands in a condition. */
export function textOf(cause: Cause, language: Language, say?: Say): string {
  const said = sentence(cause, language, say)
  const mends = remedy(cause, language, say)
  return mends ? `${said.replace(/[. ]+$/, '')}${language === 'zh' ? '；' : '; '}${mends}` : said
}

/** A stored message with what it carries; undefined where nothing is carried, or by a later version. */
export function stored(message: string, causes: readonly Cause[], language: Language, say?: Say): string | undefined {
  if (causes.length === 0 || !causes.every(isKnown)) return undefined
  const texts = causes.map((cause) => textOf(cause, language, say))
  const lines = causes.at(-1)?.lines ?? 0
  return [texts.map((text) => text.replace(/[。.]$/, '')).join(language === 'zh' ? '。' : '. '), ...(lines ? message.split('\n').slice(-lines) : [])].join('\n')
}

/** What is known of a cause by the words of the API server, a scheduler or a kubelet: the first in the table's order. */
export const recognise = (message: string): Cause | undefined => found(message).next().value ?? undefined

/** All that it tells of: a server names several unknown fields in one sentence. */
export const recogniseAll = (message: string): readonly Cause[] => [...found(message)]

function* found(message: string): Generator<Cause, undefined> {
  const tail = tailOf(message)
  if (tail && isKnown(tail)) yield tail
  const read = message.slice(0, contract.longest)
  for (const { code, pattern, params } of signs) {
    for (const [, ...groups] of read.matchAll(pattern)) yield { code, params: Object.fromEntries(params.flatMap((name, index) => (groups[index] ? [[name, groups[index]]] : []))) }
  }
  return undefined
}

function fill(template: string, params: Params, language: Language, say: Say, inner: number): string {
  const has = (name: string): boolean => params[name] !== undefined && params[name] !== ''
  return template
    .replace(/\[\[(.*?)\]\]/g, (_, part: string) => ([...part.matchAll(/\{(\w+)!?\}/g)].every(([, name]) => has(name!)) ? part : ''))
    .replace(/\{(\w+)(!?)\}/g, (_, name: string, mends: string) => {
      const value = params[name]
      if (value === undefined) return ''
      if (typeof value === 'object') return !inner || !isKnown(value) ? '' : mends ? remedy(value, language, say, inner - 1) : sentence(value, language, say, inner - 1)
      return contract.foreign.includes(name) ? say(String(value)) : String(value)
    })
}

/** In both languages, for what is said through `Text`. */
export const inAll = (make: (language: Language) => string): Text => Object.fromEntries(LANGUAGES.map((language) => [language, make(language)])) as Text
