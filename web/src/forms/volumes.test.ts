import { describe, expect, it } from 'vitest'
import { addRow, changeRow, removeRow, rowsOf } from './volumes'

const PATH = 'spec.volumes'
const added = addRow({}, PATH)

describe('volumes of a form', () => {
  it('begin with a claim at the home folder', () => {
    expect(rowsOf(added, PATH)).toEqual([{ name: 'data', row: { type: 'persistentVolumeClaim', source: '', name: 'data', mountPath: '/t9k/mnt' } }])
  })

  it('are renamed together with their mounts', () => {
    expect(changeRow(added, PATH, 0, { name: 'logs', source: 'mnist', mountPath: '/mnt' })).toEqual({
      spec: { volumes: [{ name: 'logs', persistentVolumeClaim: { claimName: 'mnist' } }], containers: [{ volumeMounts: [{ name: 'logs', mountPath: '/mnt' }] }] },
    })
  })

  it('give shared memory its usual place', () => {
    expect(changeRow(added, PATH, 0, { type: 'memory' })).toEqual({
      spec: { volumes: [{ name: 'data', emptyDir: { medium: 'Memory' } }], containers: [{ volumeMounts: [{ name: 'data', mountPath: '/dev/shm' }] }] },
    })
  })

  it('keep what the form does not ask for', () => {
    const given = { spec: { volumes: [{ name: 'n', nfs: { server: 's' } }, { name: 's', secret: { secretName: 'a', defaultMode: 256 } }], containers: [{ volumeMounts: [{ name: 's', mountPath: '/s', readOnly: true }] }] } }
    expect(rowsOf(given, PATH)[0]).toEqual({ name: 'n', row: undefined })
    expect(changeRow(given, PATH, 1, { source: 'b' })).toEqual({
      spec: { volumes: [{ name: 'n', nfs: { server: 's' } }, { name: 's', secret: { secretName: 'b', defaultMode: 256 } }], containers: [{ volumeMounts: [{ name: 's', mountPath: '/s', readOnly: true }] }] },
    })
  })

  it('go with their mounts', () => expect(removeRow(added, PATH, 0)).toEqual({ spec: { volumes: [], containers: [{ volumeMounts: [] }] } }))
})
