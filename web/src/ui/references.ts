/** Which running pods refer to a Secret or ConfigMap. Pure. */
import { field, type KubeObject } from '../kube'

/** Anywhere in the pod's spec: volumes, environment, pull secrets, projected sources. */
export function podsReferring(kind: 'Secret' | 'ConfigMap', name: string, pods: readonly KubeObject[]): KubeObject[] {
  return pods.filter((pod) => !['Succeeded', 'Failed'].includes(field(pod, 'status.phase')) && refers(pod.spec, kind === 'Secret' ? SECRET : CONFIG_MAP, name))
}

const SECRET = new Set(['secret', 'secretRef', 'secretKeyRef', 'imagePullSecrets'])
const CONFIG_MAP = new Set(['configMap', 'configMapRef', 'configMapKeyRef'])

function refers(value: unknown, keys: ReadonlySet<string>, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, inner]) => {
    if (keys.has(key)) {
      const targets = (Array.isArray(inner) ? inner : [inner]) as { name?: string; secretName?: string }[]
      if (targets.some((target) => target?.name === name || target?.secretName === name)) return true
    }
    return refers(inner, keys, name)
  })
}
