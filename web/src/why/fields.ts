/** What a server refused, by the field that it is about. Pure. */
import { KubeError, wholeMessageOf } from '../kube/errors'
import { recogniseAll, type Cause } from './table'

/** Messages by the field they are about; `*.queue` is any field that ends so; what names no field stands under ''. */
export function errorsByField(error: unknown): Record<string, string[]> {
  const found: Record<string, string[]> = {}
  if (!(error instanceof KubeError)) return { '': [wholeMessageOf(error)] }
  const put = (field: string, message: string): void => void (found[field] ??= []).push(rule(message))
  for (const { field, message } of error.causes) {
    if (!message || has(message, 'DL-UNCHECKED')) continue
    const named = field && field !== '<nil>'
    put(named ? fieldPath(field) : (fieldsIn(error.reason, message)[0] ?? ''), message)
  }
  if (Object.keys(found).length > 0) return found
  for (const field of fieldsIn(error.reason, error.message)) put(field, error.message)
  return Object.keys(found).length > 0 ? found : { '': [error.message] }
}

const has = (message: string, code: string): boolean => recogniseAll(message).some((cause) => cause.code === code)

/** Which policy it was is of no use to people; what it says is. */
const rule = (message: string): string => String(recogniseAll(message).find(({ code }) => code === 'DL-POLICY')?.params?.why ?? message)

/** The server names no field for these, but it is plain which they are about. */
const fieldsIn = (reason: string, message: string): string[] => (reason === 'AlreadyExists' ? ['metadata.name'] : recogniseAll(message).flatMap(fieldsOf))

function fieldsOf({ code, params = {} }: Cause): string[] {
  const listed = (name: string): string[] => String(params[name] ?? '').split(/[;,]/).flatMap(amountField)
  if (code.startsWith('DL-NAME-')) return ['metadata.name']
  switch (code) {
    case 'DL-QUEUE-FORBIDDEN':
      return ['*.t9kScheduler']
    case 'DL-FIELD-UNKNOWN':
    case 'DL-FIELD-TWICE':
      return [fieldPath(String(params.field))]
    case 'DL-QUOTA':
      return listed('requested')
    case 'DL-QUOTA-ASKS':
      return listed('fields')
  }
  return []
}

/** As a quota names it: `cpu=4`, `limits.memory for: main`. */
function amountField(named: string): string[] {
  const [name = ''] = named.trim().split(/[= ]/)
  const [part, resource] = name.includes('.') ? name.split('.') : ['requests', name]
  return ['cpu', 'memory', 'storage'].includes(resource!) ? [`*.resources.${part}.${resource}`] : []
}

/** `spec.containers[0].image` → `spec.containers.0.image`, the way forms write paths. */
const fieldPath = (field: string): string =>
  field
    .replace(/\[([^\]]*)\]/g, (_, inside: string) => `.${inside.replace(/["']/g, '').replaceAll('.', '\\.')}`)
    .replace(/^\./, '')
