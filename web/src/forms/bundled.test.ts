import { describe, expect, it } from 'vitest'
import { DESCRIPTIONS } from '../kinds/description'
import { exampleOf, formOf } from './bundled'
import type { WidgetName } from './spec'
import { initialValue } from './value'

const WIDGETS: WidgetName[] = ['text', 'number', 'switch', 'select', 'quantity', 'command', 'variables', 'volumes', 'claim', 'secrets', 'scheduler', 'resources', 'devices', 'labels']
// A kind that another's folder brings along has no example of its own.
const kinds = DESCRIPTIONS.filter((kind) => kind.folder === kind.kind.toLowerCase())

describe.each(kinds.map((kind) => [kind.kind, kind] as const))('the form of %s', (name, kind) => {
  const form = formOf(name)!
  it('is there, with an example of the same kind', () => {
    expect(form.sections.length).toBeGreaterThan(0)
    expect(exampleOf(name)).toMatchObject({ kind: name, apiVersion: kind.apiVersion })
  })

  it('uses widgets that exist and speaks both languages', () => {
    for (const section of form.sections) {
      expect(section.title.zh && section.title.en).toBeTruthy()
      for (const field of section.fields) {
        expect(WIDGETS).toContain(field.widget)
        expect(field.label.zh && field.label.en, field.path).toBeTruthy()
        if (field.help) expect(field.help.zh && field.help.en, field.path).toBeTruthy()
      }
    }
  })

  it('begins with an object of its kind', () => expect(initialValue(form, kind.apiVersion, name, exampleOf(name))).toMatchObject({ kind: name }))
})
