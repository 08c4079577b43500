import { expect, it } from 'vitest'
import { form as podForm } from '../pages/pods/form'
import { formOf } from './bundled'
import { namedKinds } from './named'

const named = (kind: string) => namedKinds(formOf(kind)!).map((each) => each.kind).sort()

it('a form lists the kinds that its fields name, each once', () => {
  expect(named('Notebook')).toEqual(['PersistentVolumeClaim', 'Queue'])
  expect(named('TFJob')).toEqual(['PersistentVolumeClaim', 'Queue'])
  expect(named('Queue')).toEqual([])
  expect(namedKinds(podForm).map((each) => each.kind).sort()).toEqual(['PersistentVolumeClaim', 'Queue'])
})

it('a kind that nobody has heard of is left out', () => {
  const label = { zh: 'x', en: 'x' }
  expect(namedKinds({ title: label, sections: [{ title: label, fields: [{ path: 'spec.x', widget: 'text', label, names: 'NoSuchKind' }] }] })).toEqual([])
})
