/** Templates of the create form: which fields they ask for, and the Secret that comes of it. Pure. */

export type TemplateName = 'custom' | 'apiKey' | 's3' | 'docker' | 'ssh'

export const TEMPLATES: readonly TemplateName[] = ['custom', 'apiKey', 's3', 'docker', 'ssh']

export interface Secret {
  type: string
  stringData: Record<string, string>
}

type Values = Readonly<Record<string, string>>

/** Fields in order; those in SECRET_FIELDS are typed unseen. */
export const FIELDS: Record<Exclude<TemplateName, 'custom'>, readonly string[]> = {
  apiKey: ['token'],
  s3: ['endpoint', 'accessKeyID', 'secretAccessKey'],
  docker: ['server', 'user', 'password'],
  ssh: ['publicKey'],
}

export const SECRET_FIELDS = new Set(['token', 'secretAccessKey', 'password'])

export function secretOf(template: Exclude<TemplateName, 'custom'>, values: Values): Secret {
  const value = (name: string): string => values[name] ?? ''
  switch (template) {
    case 'apiKey':
      return { type: 'Opaque', stringData: { token: value('token') } }
    case 's3':
      return { type: 'Opaque', stringData: { endpoint: value('endpoint'), accessKeyID: value('accessKeyID'), secretAccessKey: value('secretAccessKey') } }
    case 'docker': {
      const auth = toBase64(`${value('user')}:${value('password')}`)
      const config = { auths: { [value('server')]: { username: value('user'), password: value('password'), auth } } }
      return { type: 'kubernetes.io/dockerconfigjson', stringData: { '.dockerconfigjson': JSON.stringify(config) } }
    }
    case 'ssh':
      return { type: 'Opaque', stringData: { 'ssh-publickey': value('publicKey').trim() } }
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
