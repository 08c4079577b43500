/** The kinds' forms and examples, taken from ../src/danlu/kinds at build time. */
import { parse } from 'yaml'
import type { KubeObject } from '../kube'
import type { FormSpec } from './spec'

const forms = import.meta.glob<string>('../../../src/danlu/kinds/*/form.yaml', { query: '?raw', import: 'default', eager: true })
const examples = import.meta.glob<string>('../../../src/danlu/kinds/*/example.yaml', { query: '?raw', import: 'default', eager: true })

const textOf = (files: Record<string, string>, kind: string, name: string): string | undefined => files[`../../../src/danlu/kinds/${kind.toLowerCase()}/${name}`]

export function formOf(kind: string): FormSpec | undefined {
  const text = textOf(forms, kind, 'form.yaml')
  return text === undefined ? undefined : (parse(text) as FormSpec)
}

export function exampleText(kind: string): string | undefined {
  return textOf(examples, kind, 'example.yaml')
}

export function exampleOf(kind: string): KubeObject | undefined {
  const text = exampleText(kind)
  return text === undefined ? undefined : (parse(text) as KubeObject)
}
