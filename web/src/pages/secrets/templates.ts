/** Templates of the create form: which fields they ask for, and the Secret that comes of it. Pure. */

export type TemplateName = 'apiKey' | 's3Cfg' | 's3Env' | 'docker' | 'ssh' | 'ceph' | 'custom'

/** In the documents' order. */
export const TEMPLATES: readonly TemplateName[] = ['apiKey', 's3Cfg', 's3Env', 'docker', 'ssh', 'ceph', 'custom']

/** The label by which TensorStack's programs know what a Secret is for. */
export const PURPOSE = 'tensorstack.dev/resource'
export const PURPOSES: Record<TemplateName, string> = { apiKey: 'apikey', s3Cfg: 's3-cfg', s3Env: 's3-env', docker: 'docker', ssh: 'ssh', ceph: 'ceph-client', custom: 'other' }

export interface Secret {
  type: string
  stringData: Record<string, string>
}

type Values = Readonly<Record<string, string>>

/** Fields in order; those in SECRET_FIELDS are typed unseen. */
export const FIELDS: Record<Exclude<TemplateName, 'custom'>, readonly string[]> = {
  apiKey: ['token'],
  s3Cfg: ['endpoint', 'accessKeyID', 'secretAccessKey'],
  s3Env: ['endpoint', 'accessKeyID', 'secretAccessKey'],
  docker: ['server', 'user', 'password'],
  ssh: ['publicKey'],
  ceph: ['userID', 'userKey'],
}

export const SECRET_FIELDS = new Set(['token', 'secretAccessKey', 'password', 'userKey'])

export function secretOf(template: Exclude<TemplateName, 'custom'>, values: Values): Secret {
  const value = (name: string): string => values[name] ?? ''
  switch (template) {
    case 'apiKey':
      return { type: 'Opaque', stringData: { token: value('token') } }
    case 's3Cfg': {
      // s3cmd's file: hosts without a scheme, and whether they speak TLS.
      const [, scheme, host] = /^(?:(https?):\/\/)?([^/]*)/.exec(value('endpoint').trim()) ?? []
      const lines = ['[default]', `access_key = ${value('accessKeyID')}`, `secret_key = ${value('secretAccessKey')}`, `host_base = ${host}`, `host_bucket = ${host}`, `use_https = ${scheme === 'http' ? 'False' : 'True'}`]
      return { type: 'Opaque', stringData: { '.s3cfg': `${lines.join('\n')}\n` } }
    }
    case 's3Env':
      return { type: 'Opaque', stringData: { AWS_ACCESS_KEY_ID: value('accessKeyID'), AWS_SECRET_ACCESS_KEY: value('secretAccessKey'), AWS_ENDPOINT_URL: value('endpoint').trim() } }
    case 'docker': {
      const auth = toBase64(`${value('user')}:${value('password')}`)
      const config = { auths: { [value('server')]: { username: value('user'), password: value('password'), auth } } }
      return { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': JSON.stringify(config) } }
    }
    case 'ssh':
      return { type: 'Opaque', stringData: { 'ssh-publickey': value('publicKey').trim() } }
    case 'ceph':
      return { type: 'Opaque', stringData: { userID: value('userID'), userKey: value('userKey') } }
  }
}

export const toBase64 = (text: string): string => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

export const fromBase64 = (text: string): Uint8Array => Uint8Array.from(atob(text), (character) => character.charCodeAt(0))

export type KeyFault = 'keyMissing' | 'keyTwice' | 'keyBad'

/** What is wrong with the keys of a custom Secret or a ConfigMap. */
export function keyFault(keys: readonly string[]): { fault: KeyFault; key: string } | undefined {
  const seen = new Set<string>()
  for (const key of keys) {
    if (key === '') return { fault: 'keyMissing', key }
    if (!/^[-._a-zA-Z0-9]+$/.test(key)) return { fault: 'keyBad', key }
    if (seen.has(key)) return { fault: 'keyTwice', key }
    seen.add(key)
  }
  return undefined
}
