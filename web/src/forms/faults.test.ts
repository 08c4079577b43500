import { describe, expect, it } from 'vitest'
import { absentOf, faultsOf } from './faults'
import type { FieldSpec, FormSpec, WidgetName } from './spec'

const field = (path: string, widget: WidgetName, required = false): FieldSpec => ({ path, widget, label: { zh: path, en: path }, required })
const form: FormSpec = {
  title: { zh: 'x', en: 'x' },
  sections: [{ title: { zh: 'x', en: 'x' }, fields: [field('metadata.name', 'text', true), field('requests.cpu', 'quantity'), field('limits.cpu', 'quantity'), field('env', 'variables'), field('spec.volumes', 'volumes')] }],
}
const claim = (mountPath: string, claimName = 'c', name = 'v') => ({ spec: { volumes: [{ name, persistentVolumeClaim: { claimName } }], containers: [{ volumeMounts: [{ name, mountPath }] }] } })

describe('what is wrong with a form', () => {
  it.each([
    [{}, { 'metadata.name': 'required' }],
    [{ metadata: { name: 'Big_Name' } }, { 'metadata.name': 'badName' }],
    [{ metadata: { name: 'x' }, limits: { cpu: 'four' } }, { 'limits.cpu': 'notQuantity' }],
    [{ metadata: { name: 'x' }, limits: { cpu: '1' }, requests: { cpu: '1500m' } }, { 'requests.cpu': 'aboveLimit' }],
    [{ metadata: { name: 'x' }, env: [{ name: '', value: 'v' }] }, { env: 'rowIncomplete' }],
    [{ metadata: { name: 'x' }, ...claim('/mnt', '') }, { 'spec.volumes': 'rowIncomplete' }],
    [{ metadata: { name: 'x' }, ...claim('mnt') }, { 'spec.volumes': 'notAbsolute' }],
    [{ metadata: { name: 'x' }, ...claim('/mnt'), limits: { cpu: '1' }, requests: { cpu: '500m' } }, {}],
  ])('%j', (object, faults) => expect(faultsOf(form, object)).toEqual(faults))

  it('looks at the resources of a template that was filled in by hand', () => {
    const own: FormSpec = { title: form.title, sections: [{ title: form.title, fields: [field('r', 'resources')] }] }
    expect(faultsOf(own, { r: { limits: { cpu: 'lots' } } })).toEqual({ r: 'notQuantity' })
    expect(faultsOf(own, { r: { limits: { cpu: '1' }, requests: { cpu: '2' } } })).toEqual({ r: 'aboveLimit' })
    expect(faultsOf(own, { r: { limits: { cpu: '1' }, requests: { memory: '2Gi' } } })).toEqual({})
  })

  it('names claims and queues that are not there', () => {
    expect(absentOf(field('spec.volumes', 'volumes'), claim('/m').spec.volumes, ['other'])).toEqual(['c'])
    expect(absentOf(field('s', 'scheduler'), { queue: 'q' }, ['q'])).toEqual([])
    expect(absentOf(field('s', 'scheduler'), undefined, [])).toEqual([])
  })
})
