import { describe, expect, it } from 'vitest'
import type { FormSpec } from './spec'
import { entries, exampleContainer, initialValue, isOn, isShown, missing, placeErrors, read, withDefaults, write } from './value'

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

  it('find the field that an error means without naming it exactly', () => {
    const paths = ['metadata.name', 'spec.resources.requests.storage', 'spec.c.0.limits.cpu', 'spec.c.0.limits.memory', 'spec.scheduler.t9kScheduler']
    const below = 'Invalid value: "2Gi": must be less than or equal to memory limit of 1Gi'
    const errors = { 'spec.resources.storage': ['zero'], 'spec.c.0.limits': [below], '*.t9kScheduler': ['not yours'], '*.requests.cpu': ['too much'], spec: ['bad'] }
    expect(placeErrors(errors, paths)).toEqual({
      'spec.resources.requests.storage': ['zero'],
      'spec.c.0.limits.memory': [below],
      'spec.scheduler.t9kScheduler': ['not yours'],
      '': ['too much', 'spec: bad'],
    })
  })
})

describe('sections with a switch, fields with a condition', () => {
  const policy = { title: text('policy'), switch: text('add'), at: 'spec.runPolicy', fields: [{ path: 'spec.runPolicy.clean', widget: 'select' as const, label: text('clean'), default: 'None', required: true }] }
  const restarts = { path: 'spec.torchrun.maxRestarts', widget: 'number' as const, label: text('restarts'), when: 'spec.torchrun.enabled', required: true }
  const switched: FormSpec = { title: text('job'), sections: [{ title: text('a'), fields: [restarts] }, policy] }

  it('say nothing until they are on', () => {
    const empty = initialValue(switched, 'v1', 'Job')
    expect(empty).toEqual({ apiVersion: 'v1', kind: 'Job', metadata: {}, spec: {} })
    expect([isOn(policy, empty), isShown(restarts, empty), missing(switched, empty)]).toEqual([false, false, []])
  })

  it('ask for what they need once they are on', () => {
    const on = write(withDefaults(initialValue(switched, 'v1', 'Job'), policy), 'spec.torchrun.enabled', true)
    expect(isOn(policy, on)).toBe(true)
    expect(missing(switched, on)).toEqual(['spec.torchrun.maxRestarts'])
    expect(isShown(restarts, write(on, 'spec.torchrun.enabled', false))).toBe(false)
  })
})
