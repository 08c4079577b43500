/** The kinds' forms and examples, taken from ../src/danlu/kinds at build time. */
import { describe } from '../kinds/description'
import type { KubeObject } from '../kube'
import type { FormSpec } from './spec'

const forms = import.meta.glob<FormSpec>('../../../src/danlu/kinds/*/form.yaml', { eager: true, import: 'default' })
const examples = import.meta.glob<KubeObject>('../../../src/danlu/kinds/*/example.yaml', { eager: true, import: 'default' })

/** A kind that another's folder brings along has the same form. */
const pathOf = (kind: string, name: string): string => `../../../src/danlu/kinds/${describe(kind)?.folder ?? kind.toLowerCase()}/${name}`

export const formOf = (kind: string): FormSpec | undefined => forms[pathOf(kind, 'form.yaml')]

export const exampleOf = (kind: string): KubeObject | undefined => examples[pathOf(kind, 'example.yaml')]
