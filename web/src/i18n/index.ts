/** The language of the person: remembered, else the browser's. */
import { useMemo, useSyncExternalStore } from 'react'
import { fill, LANGUAGES, type Language, type Parameters, type Text, type Words } from './words'

export { defineWords, fill, LANGUAGES, type Language, type Text, type Words } from './words'

const KEY = 'danlu.language'
const listeners = new Set<() => void>()

function initial(): Language {
  const remembered = globalThis.localStorage?.getItem(KEY)
  if (LANGUAGES.includes(remembered as Language)) return remembered as Language
  return globalThis.navigator?.language?.toLowerCase().startsWith('zh') ? 'zh' : 'en'
}

let current: Language = initial()
markPage()

export const language = (): Language => current

/** For screen readers, hyphenation and fonts. */
function markPage(): void {
  if (typeof document !== 'undefined') document.documentElement.lang = current === 'zh' ? 'zh-CN' : 'en'
}

export function setLanguage(chosen: Language): void {
  current = chosen
  localStorage.setItem(KEY, chosen)
  markPage()
  listeners.forEach((listener) => listener())
}

const subscribe = (listener: () => void): (() => void) => {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export const useLanguage = (): Language => useSyncExternalStore(subscribe, language)

/** `const w = useWords(words); w('title'); w('deleting', { name })` */
export function useWords<W extends Words>(words: W): (key: keyof W, parameters?: Parameters) => string {
  const chosen = useLanguage()
  return useMemo(() => (key, parameters) => fill(words[key]?.[chosen] ?? String(key), parameters), [words, chosen])
}

/** For texts that come from files: `text(form.title)`. */
export function useText(): (text: Text | undefined, parameters?: Parameters) => string {
  const chosen = useLanguage()
  return useMemo(() => (text, parameters) => (text ? fill(text[chosen], parameters) : ''), [chosen])
}

/** Seconds as people say them: 3 分钟 / 3 min. */
export function age(seconds: number, chosen: Language = current): string {
  const units: [number, string, string][] = [
    [86_400, ' 天', ' d'],
    [3_600, ' 小时', ' h'],
    [60, ' 分钟', ' min'],
    [1, ' 秒', ' s'],
  ]
  const whole = Math.max(0, Math.floor(seconds))
  const [size, zh, en] = units.find(([limit]) => whole >= limit) ?? units[3]!
  return `${Math.floor(whole / size)}${chosen === 'zh' ? zh : en}`
}

/** 3 分钟前 / 3 min ago */
export const ago = (seconds: number, chosen: Language = current): string => (chosen === 'zh' ? `${age(seconds, chosen)}前` : `${age(seconds, chosen)} ago`)

// Making one costs a thousand times what using it does, and a table uses it for every row.
const formats: Record<Language, Intl.DateTimeFormat> = {
  zh: new Intl.DateTimeFormat('zh-CN', { dateStyle: 'medium', timeStyle: 'medium' }),
  en: new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' }),
}

export function dateTime(iso: string | undefined | null, chosen: Language = current): string {
  if (!iso) return '-'
  const date = new Date(iso)
  return Number.isNaN(date.getTime())
    ? iso
    : formats[chosen].format(date)
}
