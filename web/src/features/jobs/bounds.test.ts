import { expect, it } from 'vitest'
import { boundsOf } from './bounds'

const role = (name: string, cpu: string) => ({ name, replicas: 2, restartPolicy: '', spec: { containers: [{ name: 'c', resources: { requests: { cpu: '500m' }, limits: { cpu } } }] } })

it('roles that ask for the same share a line', () => {
  expect(boundsOf([role('master', '1'), role('worker', '2')], 'cpu')).toEqual([
    { role: 'master', bound: 'limit', value: 1 },
    { role: 'worker', bound: 'limit', value: 2 },
    { role: 'master, worker', bound: 'request', value: 0.5 },
  ])
  expect(boundsOf([role('master', '1')], 'memory')).toEqual([])
})
