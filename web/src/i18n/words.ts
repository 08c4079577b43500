/** Words stand beside the page that says them, in a `words.ts`: a missing language is a type error. */

export const LANGUAGES = ['zh', 'en'] as const
export type Language = (typeof LANGUAGES)[number]

export type Text = Readonly<Record<Language, string>>
export type Words = Readonly<Record<string, Text>>

/** Checks the shape and keeps the keys: `export const words = defineWords({ title: { zh: '…', en: '…' } })`. */
export const defineWords = <const W extends Words>(words: W): W => words

export type Parameters = Readonly<Record<string, string | number>>

/** `{name}` in a text is replaced by the parameter of that name. */
export const fill = (text: string, parameters?: Parameters): string =>
  parameters ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(parameters[name] ?? whole)) : text
