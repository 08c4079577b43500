import { describe, expect, it } from 'vitest'
import { KubeError } from '../kube/errors'
import { errorsByField } from './fields'

const refused = (message: string, causes: { field?: string; message: string }[] = [], reason = 'Forbidden') => errorsByField(new KubeError(403, reason, message, causes))

describe('errors by field', () => {
  it('take the fields that the server names', () => {
    const causes = [
      { field: 'spec.replicaSpecs[0].replicas', message: 'Invalid value' },
      { field: '<nil>', message: "Invalid value: a job's name is … [DL-NAME-HOST]" },
      { field: '<nil>', message: 'some validation rules were not checked because the object was invalid' },
    ]
    expect(refused('invalid', causes, 'Invalid')).toEqual({ 'spec.replicaSpecs.0.replicas': ['Invalid value'], 'metadata.name': ["Invalid value: a job's name is … [DL-NAME-HOST]"] })
  })

  it('find the field of a cause that names none', () => {
    expect(refused('denied', [{ message: 'R001: namespace default may not use queue vip [DL-QUEUE-FORBIDDEN namespace=default queue=vip]' }])).toEqual({ '*.t9kScheduler': ['R001: namespace default may not use queue vip [DL-QUEUE-FORBIDDEN namespace=default queue=vip]'] })
  })

  it.each([
    ['jobs "x" already exists', 'AlreadyExists', ['metadata.name']],
    ['x: strict decoding error: unknown field "spec.foo", unknown field "spec.replicaSpecs[0].bar"', 'BadRequest', ['spec.foo', 'spec.replicaSpecs.0.bar']],
    ['pvc "big" is forbidden: exceeded quota: q, requested: requests.storage=5Gi, used: requests.storage=0, limited: requests.storage=2Gi', 'Forbidden', ['*.resources.requests.storage']],
    ['pods "a" is forbidden: failed quota: q: must specify limits.memory for: a; requests.cpu for: a', 'Forbidden', ['*.resources.limits.memory', '*.resources.requests.cpu']],
    ['denied request: R001: namespace default may not use queue vip [DL-QUEUE-FORBIDDEN namespace=default queue=vip]', 'Forbidden', ['*.t9kScheduler']],
    ["pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no [DL-NAME-HOST]", 'Forbidden', ['metadata.name']],
    ['strict decoding error: duplicate field "metadata.name"', 'BadRequest', ['metadata.name']],
    ['something else', 'Forbidden', ['']],
  ])('%s', (message, reason, fields) => expect(Object.keys(refused(message, [], reason))).toEqual(fields))

  it('leave out which policy it was', () => {
    const message = "pods \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: nobody runs as root"
    expect(refused('denied', [{ message }])).toEqual({ '': ['nobody runs as root'] })
  })
})
