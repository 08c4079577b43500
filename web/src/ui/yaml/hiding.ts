/** Objects whose values are nobody's business until asked for. Pure. */
import type { KubeObject } from '../../kube/types'

export const HIDDEN = '••••••••'
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'
const FIELDS = ['data', 'stringData', 'binaryData'] as const

export const keepsValues = (object: KubeObject): boolean => object.kind === 'Secret' || object.kind === 'ConfigMap'

/** The same object with dots for values; kubectl keeps a copy of them in an annotation. */
export function withoutValues(object: KubeObject): KubeObject {
  const shown: KubeObject = { ...object }
  for (const name of FIELDS) {
    const values = shown[name] as Record<string, string> | undefined
    if (values) shown[name] = Object.fromEntries(Object.keys(values).map((key) => [key, HIDDEN]))
  }
  const { annotations } = object.metadata
  if (annotations?.[APPLIED]) shown.metadata = { ...object.metadata, annotations: { ...annotations, [APPLIED]: HIDDEN } }
  return shown
}
