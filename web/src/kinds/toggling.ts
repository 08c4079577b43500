/** A boolean of an object that a person turns on and off. Pure. */
import { write } from '../forms/value'
import { field, type KubeObject } from '../kube/types'
import type { ActionSpec } from './description'

/** On, in whichever spelling. */
export const isOn = (object: KubeObject, spec: ActionSpec): boolean =>
  field(object, spec.path ?? '') === true || Object.entries(spec.older ?? {}).some(([path, value]) => field(object, path) === value)

/** A merge patch; older spellings are taken away with null. */
export function togglePatch(object: KubeObject, spec: ActionSpec, on: boolean): object {
  const older = Object.keys(spec.older ?? {}).filter((path) => field(object, path) !== undefined)
  return older.reduce<object>((patch, path) => withNull(patch, path), write({}, spec.path ?? '', on))
}

/** `write` takes null for nothing. */
function withNull(object: object, path: string): object {
  const [last = '', ...above] = path.split('.').reverse()
  const parent = above.reverse().join('.')
  return write(object, parent, { ...((field(object, parent) as object | undefined) ?? {}), [last]: null })
}
