/** Whose objects a form's fields name. */
import { kindNamed, type Kind } from '../kube/kinds'
import type { FieldSpec, FormSpec } from './spec'

const CLAIM = 'PersistentVolumeClaim'

/** Of the widgets that choose volumes it is known. */
export const namedBy = (field: FieldSpec): string | undefined => field.names ?? (field.widget === 'volumes' || field.widget === 'claim' ? CLAIM : undefined)

/** Each once; without those that nobody has heard of. */
export function namedKinds(form: FormSpec): readonly Kind[] {
  const names = new Set(form.sections.flatMap((section) => section.fields.flatMap((field) => namedBy(field) ?? [])))
  return [...names].flatMap((name) => kindNamed(name) ?? [])
}
