import { describe, expect, it } from 'vitest'
import { KubeError } from '../../kube'
import { faultsOf } from './createDocuments'
import { parseYaml } from './yamlText'

const TEXT = `kind: ConfigMap
metadata: {name: first}
---
kind: Job
metadata:
  name: second
spec:
  scheduler:
    t9kScheduler: {queue: vip}
  containers:
    - name: a
      resources:
        limits:
          memory: 4GB
`
const parsed = parseYaml(TEXT)
const lines = (error: KubeError): number[] => faultsOf(error, { object: parsed.objects[1]!, place: parsed.places[1]! }).map((fault) => fault.line)

describe('what the server refuses in a text', () => {
  it.each([
    ['a field', new KubeError(422, 'Invalid', 'x', [{ field: 'spec.containers[0].name', message: 'bad' }]), 11],
    ['a field that is not there', new KubeError(422, 'Invalid', 'x', [{ field: 'spec.containers[0].image', message: 'Required value' }]), 11],
    ['an unknown field', new KubeError(400, 'BadRequest', 'strict decoding error: unknown field "spec.scheduler"'), 8],
    ['a name that is taken', new KubeError(409, 'AlreadyExists', 'jobs "second" already exists'), 6],
    ['a queue', new KubeError(403, 'Forbidden', 'denied request: R001: namespace a may not use queue vip: no [DL-QUEUE-FORBIDDEN namespace=a queue=vip]'), 9],
    ['a quantity', new KubeError(400, 'BadRequest', 'quantities must match the regular expression x'), 14],
    ['all of it', new KubeError(500, 'InternalError', 'odd'), 4],
  ])('is shown at its line: %s', (_, error, line) => expect(lines(error)).toEqual([line]))
})

describe('what is missing', () => {
  it('is named: it has no line of its own', () => {
    const error = new KubeError(422, 'Invalid', 'invalid', [{ field: 'spec', message: 'Required value' }])
    expect(faultsOf(error, { object: { metadata: { name: 'j' } }, place: () => ({ line: 1, column: 1 }) })).toEqual([{ line: 1, column: 1, message: 'spec: Required value' }])
  })
})
