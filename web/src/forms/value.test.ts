import { describe, expect, it } from 'vitest'
import type { FormSpec } from './spec'
import { entries, exampleContainer, initialValue, missing, placeErrors, read, write } from './value'

const text = (value: string) => ({ zh: value, en: value })
const form: FormSpec = {
  title: text('job'),
  sections: [
    { title: text('a'), fields: [{ path: 'metadata.name', widget: 'text', label: text('name'), required: true }] },
    {
      title: text('b'),
      each: 'spec.replicaSpecs',
      fields: [
        { path: 'type', widget: 'text', label: text('type'), default: 'worker' },
        { path: 'template.spec.containers.0.image', widget: 'text', label: text('image'), required: true },
      ],
    },
  ],
}
const example = { spec: { replicaSpecs: [{ template: { spec: { containers: [{ name: 'pytorch' }] } } }] } }

describe('form values', () => {
  it('are read and written by path, dots in names too', () => {
    const made = write({}, 'limits.nvidia\\.com/gpu', 2)
    expect(made).toEqual({ limits: { 'nvidia.com/gpu': 2 } })
    expect(read(made, 'limits.nvidia\\.com/gpu')).toBe(2)
  })

  it('make lists for numbers', () => {
    expect(write({}, 'spec.containers.0.image', 'x')).toEqual({ spec: { containers: [{ image: 'x' }] } })
  })

  it('leave nothing empty behind', () => {
    const made = write({ a: 1 }, 'spec.runMode.debug.enabled', true)
    expect(write(made, 'spec.runMode.debug.enabled', undefined)).toEqual({ a: 1 })
    expect(write(write({}, 'p.0.name', 'x'), 'p.0.name', '')).toEqual({})
  })

  it('do not change what they were made of', () => {
    const before = { spec: { a: 1 } }
    write(before, 'spec.a', 2)
    expect(before).toEqual({ spec: { a: 1 } })
  })

  it('begin with defaults and the container name of the example', () => {
    expect(exampleContainer(example)).toBe('pytorch')
    expect(initialValue(form, 'v1', 'Job', example)).toMatchObject({
      kind: 'Job',
      spec: { replicaSpecs: [{ type: 'worker', template: { spec: { containers: [{ name: 'pytorch' }] } } }] },
    })
  })

  it('know what is missing', () => {
    const value = initialValue(form, 'v1', 'Job', example)
    expect(missing(form, value)).toEqual(['metadata.name', 'spec.replicaSpecs.0.template.spec.containers.0.image'])
    expect(entries(value, form.sections[1]!)).toEqual([{ key: '0', path: 'spec.replicaSpecs.0' }])
  })

  it('put errors beside their fields', () => {
    const placed = placeErrors({ 'metadata.name': ['taken'], 'spec.x.y': ['deep'], 'spec.other': ['odd'] }, ['metadata.name', 'spec.x'])
    expect(placed).toEqual({ 'metadata.name': ['taken'], 'spec.x': ['deep'], '': ['spec.other: odd'] })
  })
})
