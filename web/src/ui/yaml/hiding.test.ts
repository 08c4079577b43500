import { describe, expect, it } from 'vitest'
import { HIDDEN, keepsValues, withoutValues } from './hiding'

const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 'key', annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"data":{"token":"c2VjcmV0"}}', kept: 'yes' } },
  data: { token: 'c2VjcmV0' },
}

describe('values of secrets', () => {
  it('are nowhere in what is shown', () => {
    const shown = withoutValues(secret)
    expect(JSON.stringify(shown)).not.toContain('c2VjcmV0')
    expect(shown.data).toEqual({ token: HIDDEN })
    expect(shown.metadata.annotations?.kept).toBe('yes')
  })
  it('stay in the object itself', () => {
    withoutValues(secret)
    expect(secret.data.token).toBe('c2VjcmV0')
  })
  it('are those of Secret and ConfigMap only', () => {
    expect(keepsValues({ kind: 'ConfigMap', metadata: { name: 'a' } })).toBe(true)
    expect(keepsValues({ kind: 'Pod', metadata: { name: 'a' } })).toBe(false)
  })
})
