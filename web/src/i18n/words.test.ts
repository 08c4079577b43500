import { describe, expect, it } from 'vitest'
import { LANGUAGES, type Words } from './words'

const modules = import.meta.glob<Record<string, Words>>('../**/words.ts', { eager: true })
const tables = Object.entries(modules)
  .filter(([path]) => !path.endsWith('i18n/words.ts') && path !== './words.ts')
  .flatMap(([path, module]) => Object.entries(module).map(([name, words]) => [`${path} ${name}`, words] as const))

const holes = (text: string): string[] => [...text.matchAll(/\{(\w+)\}/g)].map((match) => match[1]!).sort()

describe('words', () => {
  it('are found', () => expect(tables.length).toBeGreaterThan(3))

  it.each(tables)('%s: both languages have every key and the same parameters', (_, words) => {
    for (const [key, text] of Object.entries(words)) {
      for (const language of LANGUAGES) expect(text[language]?.trim(), `${key}.${language}`).toBeTruthy()
      expect(holes(text.zh), key).toEqual(holes(text.en))
    }
  })
})
