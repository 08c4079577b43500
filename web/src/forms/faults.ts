/** What is wrong with a form's object, as far as it can be told without the server. Pure. */
import { isQuantity, quantity } from '../kube/quantity'
import type { FieldSpec, FormSpec } from './spec'
import { entries, isOn, isShown, missing, read, steps, type Value } from './value'
import { rowsOf } from './volumes'

export type Fault = 'required' | 'queueNeeded' | 'notQuantity' | 'badName' | 'aboveLimit' | 'rowIncomplete' | 'notAbsolute' | 'mountedTwice'

/** By full path. */
export function faultsOf(form: FormSpec, object: unknown): Record<string, Fault> {
  const found: Record<string, Fault> = {}
  for (const section of form.sections) {
    if (!isOn(section, object)) continue
    for (const root of section.each ? entries(object, section).map((entry) => `${entry.path}.`) : ['']) {
      for (const field of section.fields) {
        const fault = isShown(field, object) ? faultOf(field, root + field.path, object) : undefined
        if (fault) found[root + field.path] = fault
      }
    }
  }
  for (const path of missing(form, object)) found[path] = 'required'
  return found
}

function faultOf(field: FieldSpec, path: string, object: unknown): Fault | undefined {
  const value = read(object, path)
  if (value === undefined || value === null || value === '') return undefined
  if (path === 'metadata.name') return /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/.test(String(value)) ? undefined : 'badName'
  switch (field.widget) {
    case 'quantity':
      return quantityFault(String(value), path, object)
    case 'resources':
      return resourcesFault(value as Resources)
    case 'scheduler':
      return (value as { queue?: string }).queue ? undefined : 'queueNeeded'
    case 'variables':
      return (value as { name?: string }[]).some((row) => !row.name) ? 'rowIncomplete' : undefined
    case 'volumes':
      return volumesFault(object as Value, path)
    default:
      return undefined
  }
}

function quantityFault(value: string, path: string, object: unknown): Fault | undefined {
  if (!isQuantity(value) || quantity(value) < 0) return 'notQuantity'
  const limit = steps(path).at(-2) === 'requests' ? read(object, path.replace(/requests\.(\w+)$/, 'limits.$1')) : undefined
  return limit !== undefined && isQuantity(String(limit)) && quantity(value) > quantity(String(limit)) ? 'aboveLimit' : undefined
}

interface Resources {
  requests?: Record<string, string>
  limits?: Record<string, string>
}

/** A container's, filled in by hand. */
function resourcesFault({ requests = {}, limits = {} }: Resources): Fault | undefined {
  if ([...Object.values(requests), ...Object.values(limits)].some((each) => !isQuantity(String(each)) || quantity(each) < 0)) return 'notQuantity'
  return Object.entries(requests).some(([name, asked]) => limits[name] !== undefined && quantity(asked) > quantity(limits[name])) ? 'aboveLimit' : undefined
}

function volumesFault(object: Value, path: string): Fault | undefined {
  const rows = rowsOf(object, path).flatMap(({ row }) => row ?? [])
  const places = rows.map((row) => row.mountPath)
  if (rows.some((row) => !row.name || !row.mountPath || (!row.source && ['persistentVolumeClaim', 'secret', 'configMap'].includes(row.type)))) return 'rowIncomplete'
  if (places.some((place) => !place.startsWith('/'))) return 'notAbsolute'
  return new Set(places).size < places.length ? 'mountedTwice' : undefined
}

/** Claims and queues that an object names and that are not there: no fault, since they may come, but it will wait. */
export function absentOf(field: FieldSpec, value: unknown, known: readonly string[]): string[] {
  const named =
    field.widget === 'volumes'
      ? ((value ?? []) as { persistentVolumeClaim?: { claimName?: string } }[]).map((volume) => volume.persistentVolumeClaim?.claimName)
      : field.widget === 'scheduler'
        ? [(value as { queue?: string } | undefined)?.queue]
        : [value as string | undefined]
  return named.filter((name): name is string => typeof name === 'string' && name !== '' && !known.includes(name))
}
