import { describe, expect, it } from 'vitest'
import { placeAt } from './place'

const TEXT = `apiVersion: v1
kind: Pod
metadata:
  name: a
spec:
  containers:
    - name: one
      image: x
    - name: two
      env:
      - name: A
        value: b
      resources:
        limits:
          cpu: 1
      
  restartPolicy: Never
`.split('\n')

const path = (row: number, column = 0) => placeAt(TEXT, row, column)

describe('the place in a YAML text', () => {
  it('knows the object', () => expect(path(3)).toMatchObject({ apiVersion: 'v1', kind: 'Pod', key: 'name', path: ['metadata'] }))
  it('counts list items', () => {
    expect(path(6).path).toEqual(['spec', 'containers', 0])
    expect(path(7).path).toEqual(['spec', 'containers', 0])
    expect(path(8).path).toEqual(['spec', 'containers', 1])
  })
  it('sees lists that are not indented further than their key', () => {
    expect(path(10).path).toEqual(['spec', 'containers', 1, 'env', 0])
    expect(path(11).path).toEqual(['spec', 'containers', 1, 'env', 0])
  })
  it('goes deep', () => expect(path(14).path).toEqual(['spec', 'containers', 1, 'resources', 'limits']))
  it('takes the column on an empty line', () => expect(path(15, 6).path).toEqual(['spec', 'containers', 1]))
  it('comes back up', () => expect(path(16).path).toEqual(['spec']))
})
