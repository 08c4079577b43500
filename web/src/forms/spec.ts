/** The format of form.yaml; src/danlu/kinds/README.md describes it. */
import type { Text } from '../i18n/words'

export type WidgetName = 'text' | 'number' | 'switch' | 'select' | 'quantity' | 'command' | 'variables' | 'volumes' | 'claim' | 'secrets' | 'scheduler' | 'resources' | 'devices' | 'labels'

export interface FieldSpec {
  path: string
  widget: WidgetName
  label: Text
  help?: Text
  required?: boolean
  default?: unknown
  options?: readonly string[]
  /** shown only when the object has something (not false) at this path */
  when?: string
  suggestions?: readonly string[]
  /** names of objects of this kind are offered */
  names?: string
}

export interface SectionSpec {
  title: Text
  /** repeated for each value of this map (with `keys`) or list */
  each?: string
  keys?: readonly string[]
  /** the section is off until this switch is on; off, the object has nothing at `at` */
  switch?: Text
  at?: string
  /** with `switch`: what stands at `at` when it is on, and what that means */
  value?: unknown
  help?: Text
  /** with `each`: what the button says that adds one */
  add?: Text
  fields: readonly FieldSpec[]
}

export interface FormSpec {
  title: Text
  sections: readonly SectionSpec[]
}
