/** Reading and writing objects by the paths of form.yaml. Pure: what is written is a new object. */
import { recognise } from '../why/table'
import type { FieldSpec, FormSpec, SectionSpec } from './spec'

export type Value = Record<string, unknown>

/** `spec.limits.nvidia\.com/gpu` → ['spec', 'limits', 'nvidia.com/gpu'] */
export const steps = (path: string): string[] => path.split(/(?<!\\)\./).map((part) => part.replaceAll('\\.', '.'))

/** One step of a path, with the dots in it kept. */
export const escapeStep = (step: string): string => step.replaceAll('.', '\\.')

const isIndex = (step: string): boolean => /^\d+$/.test(step)

export function read(object: unknown, path: string): unknown {
  let value = object
  for (const step of steps(path)) {
    if (value === null || value === undefined) return undefined
    value = (value as Record<string, unknown>)[step]
  }
  return value
}

const isEmpty = (value: unknown): boolean =>
  value === undefined || value === null || value === '' || (Array.isArray(value) ? value.length === 0 : typeof value === 'object' && Object.keys(value as object).length === 0)

/** undefined or '' takes the field away, and what has become empty around it. */
export function write<T>(object: T, path: string, value: unknown): T {
  return set(object, steps(path), value) as T
}

function set(object: unknown, [step, ...rest]: string[], value: unknown): unknown {
  if (step === undefined) return value
  const list = Array.isArray(object) || (object === undefined && isIndex(step))
  const copy: Record<string, unknown> | unknown[] = list ? [...((object as unknown[] | undefined) ?? [])] : { ...((object as object | undefined) ?? {}) }
  const next = set((copy as Record<string, unknown>)[step], rest, value)
  if (list) {
    ;(copy as unknown[])[Number(step)] = next
    return (copy as unknown[]).every(isEmpty) ? undefined : copy
  }
  if (isEmpty(next) && !(rest.length === 0 && typeof next === 'object' && next !== null)) delete (copy as Record<string, unknown>)[step]
  else (copy as Record<string, unknown>)[step] = next
  return copy
}

/** The paths of a repeated section's entries in the object. */
export function entries(object: unknown, section: SectionSpec): { key: string; path: string }[] {
  if (!section.each) return []
  const value = read(object, section.each)
  if (Array.isArray(value)) return value.map((_, index) => ({ key: String(index), path: `${section.each}.${index}` }))
  return Object.keys((value as object | undefined) ?? {}).map((key) => ({ key, path: `${section.each}.${escapeStep(key)}` }))
}

/** A new entry of a repeated section: its defaults, and the container name that the kind expects. */
/** `taken`: types that are there already; the new one gets the first that is free. */
export function newEntry(section: SectionSpec, example: unknown, taken: readonly unknown[] = []): Value {
  let entry: Value = {}
  for (const field of section.fields) {
    const free = field.path === 'type' && taken.includes(field.default) ? (field.options ?? field.suggestions)?.find((each) => !taken.includes(each)) : undefined
    if (field.default !== undefined) entry = write(entry, field.path, free ?? field.default)
  }
  const container = exampleContainer(example)
  if (container && section.fields.some((field) => field.path.includes('containers.0.'))) entry = write(entry, 'template.spec.containers.0.name', container)
  return entry
}

/** The name of the first container in an example, wherever it stands. */
export function exampleContainer(example: unknown): string | undefined {
  if (typeof example !== 'object' || example === null) return undefined
  const { containers } = example as { containers?: { name?: string }[] }
  if (Array.isArray(containers)) return containers[0]?.name
  for (const value of Object.values(example)) {
    const found = exampleContainer(value)
    if (found) return found
  }
  return undefined
}

/** What an empty form stands for: the kind, its defaults, and one entry of each repeated section. */
export function initialValue(form: FormSpec, apiVersion: string, kind: string, example?: unknown): Value {
  let value: Value = { apiVersion, kind, metadata: {}, spec: {} }
  for (const section of form.sections) {
    if (section.each) {
      const entry = newEntry(section, example)
      const first = section.keys ? firstKey(section, example) : undefined
      if (section.keys) value = write(value, `${section.each}.${escapeStep(first!)}`, entry)
      else if (section.fields.some((field) => field.path.includes('containers.0.'))) value = write(value, `${section.each}.0`, entry)
      continue
    }
    if (section.switch) continue
    value = withDefaults(value, section)
    const inContainer = section.fields.find((field) => field.path.includes('.containers.0.'))
    const container = exampleContainer(example)
    if (inContainer && container) value = write(value, `${inContainer.path.split('.containers.0.')[0]}.containers.0.name`, container)
  }
  return value
}

/** What a section begins with, when it is switched on or the form is new. */
export function withDefaults<T>(object: T, section: SectionSpec): T {
  let value = section.value === undefined ? object : write(object, section.at!, section.value)
  for (const field of section.fields) {
    if (field.default !== undefined && field.default !== false) value = write(value, field.path, field.default)
  }
  return value
}

/** A section that can be switched off is on when the object says anything of it. */
export const isOn = (section: SectionSpec, object: unknown): boolean => !section.switch || says(read(object, section.at!))

const says = (value: unknown): boolean => value !== false && !isEmpty(value)

/** A field with `when` is shown once that says something. */
export const isShown = (field: FieldSpec, object: unknown): boolean => field.when === undefined || says(read(object, field.when))

const firstKey = (section: SectionSpec, example: unknown): string => {
  const shown = Object.keys((read(example, section.each!) as object | undefined) ?? {})
  return shown.find((key) => section.keys!.includes(key)) ?? section.keys![0]!
}

/** Fields that must be filled and are not, by their full path. */
export function missing(form: FormSpec, object: unknown): string[] {
  const found: string[] = []
  for (const section of form.sections) {
    if (!isOn(section, object)) continue
    const roots = section.each ? entries(object, section).map((entry) => `${entry.path}.`) : ['']
    for (const root of roots) {
      for (const field of section.fields) if (field.required && isShown(field, object) && isEmpty(read(object, root + field.path))) found.push(root + field.path)
    }
  }
  return found
}

/** Server errors by the field that shows them; the rest under ''. An error deeper than any field goes to the field above it. */
export function placeErrors(errors: Record<string, string[]>, paths: readonly string[]): Record<string, string[]> {
  const placed: Record<string, string[]> = {}
  for (const [path, messages] of Object.entries(errors)) {
    for (const message of messages) {
      const target = placeOf(path, message, paths)
      ;(placed[target ?? ''] ??= []).push(target || !path || path.startsWith('*.') ? message : `${path}: ${message}`)
    }
  }
  return placed
}

function placeOf(path: string, message: string, paths: readonly string[]): string | undefined {
  if (path.startsWith('*.')) return paths.find((each) => each.endsWith(path.slice(1)))
  const above = paths.filter((each) => path === each || path.startsWith(`${each}.`)).sort((a, b) => b.length - a.length)[0]
  if (above) return above
  // Of a whole (requests) that several fields make up, the message may name one.
  const last = (each: string): string => steps(each).at(-1) ?? ''
  const within = steps(path).length > 2 ? paths.filter((each) => each.startsWith(`${path}.`)) : []
  const { resource } = recognise(message)?.params ?? {}
  const named = within.find((each) => last(each) === resource) ?? within[0]
  if (named) return named
  // A claim's `spec.resources[storage]` is what stands at spec.resources.requests.storage.
  const around = steps(path).slice(0, -1).map(escapeStep).join('.')
  return around ? paths.find((each) => each.startsWith(`${around}.`) && last(each) === last(path)) : undefined
}
