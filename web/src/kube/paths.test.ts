import { describe, expect, it } from 'vitest'
import { KINDS, platformKind } from './kinds'
import { collectionPath, objectPath, selectionPath, withQuery } from './paths'

describe('addresses', () => {
  it('of core and other groups, with and without a namespace', () => {
    expect(collectionPath(KINDS.Pod, 'demo')).toBe('/k8s/api/v1/namespaces/demo/pods')
    expect(collectionPath(KINDS.Pod)).toBe('/k8s/api/v1/pods')
    expect(collectionPath(KINDS.Node, 'demo')).toBe('/k8s/api/v1/nodes')
    expect(objectPath(platformKind('Notebook'), 'demo', 'mnist')).toBe('/k8s/apis/tensorstack.dev/v1beta1/namespaces/demo/notebooks/mnist')
  })

  it('add queries to queries', () => {
    const path = selectionPath(KINDS.Pod, { namespace: 'demo', fields: 'metadata.name=a' })
    expect(withQuery(path, { limit: 500, continue: undefined })).toBe('/k8s/api/v1/namespaces/demo/pods?fieldSelector=metadata.name%3Da&limit=500')
    expect(withQuery('/x', { command: ['sh', '-c'] })).toBe('/x?command=sh&command=-c')
  })
})
