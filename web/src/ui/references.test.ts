import { describe, expect, it } from 'vitest'
import { podsReferring } from './references'

const pod = (spec: object, phase = 'Running') => ({ metadata: { name: 'p' }, spec, status: { phase } })

describe('references', () => {
  it.each([
    [{ volumes: [{ name: 'v', secret: { secretName: 's' } }] }],
    [{ imagePullSecrets: [{ name: 's' }] }],
    [{ containers: [{ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }] }],
    [{ containers: [{ envFrom: [{ secretRef: { name: 's' } }] }] }],
    [{ volumes: [{ projected: { sources: [{ secret: { name: 's' } }] } }] }],
  ])('are found in %j', (spec) => {
    expect(podsReferring('Secret', 's', [pod(spec)])).toHaveLength(1)
    expect(podsReferring('Secret', 'other', [pod(spec)])).toHaveLength(0)
    expect(podsReferring('ConfigMap', 's', [pod(spec)])).toHaveLength(0)
  })

  it('of pods that have ended do not count', () => expect(podsReferring('Secret', 's', [pod({ imagePullSecrets: [{ name: 's' }] }, 'Failed')])).toHaveLength(0))
})
