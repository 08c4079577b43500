import { describe, expect, it } from 'vitest'
import { fromBase64, keyFault, secretOf, toBase64 } from './templates'

describe('secrets', () => {
  it('are made of templates', () => {
    const docker = secretOf('docker', { server: 'r.example', user: 'u', password: 'p' })
    expect(docker.type).toBe('kubernetes.io/dockerconfigjson')
    expect(JSON.parse(docker.stringData['.dockerconfigjson']!)).toEqual({ auths: { 'r.example': { username: 'u', password: 'p', auth: 'dTpw' } } })
  })

  it('hold what programs of S3 read', () => {
    const values = { endpoint: 'http://minio:9000', accessKeyID: 'a', secretAccessKey: 's' }
    expect(secretOf('s3Cfg', values).stringData['.s3cfg']).toContain('host_base = minio:9000\n')
    expect(secretOf('s3Cfg', values).stringData['.s3cfg']).toContain('use_https = False')
    expect(secretOf('s3Env', values).stringData).toEqual({ AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 's', AWS_ENDPOINT_URL: 'http://minio:9000' })
  })

  it('survive base64 in any language', () => expect(new TextDecoder().decode(fromBase64(toBase64('丹炉')))).toBe('丹炉'))

  it('have proper keys', () => {
    expect(keyFault(['a', 'b.c'])).toBeUndefined()
    expect(keyFault(['a', 'a'])?.fault).toBe('keyTwice')
    expect(keyFault([''])?.fault).toBe('keyMissing')
    expect(keyFault(['a b'])?.fault).toBe('keyBad')
  })
})
