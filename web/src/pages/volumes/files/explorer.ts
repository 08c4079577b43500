/** The pod through which a volume's files are seen, and how they are shown. Pure. */
import { field, type KubeObject } from '../../../kube/types'

export const EXPLORES = 'console.danlu.dev/explores'
export const ROOT = '/files'
const CONTAINER = 'files'
// Nobody closes everything they open: after this long the pod ends by itself.
const LIFE_S = 8 * 3600

export const explorerName = (claim: string): string => `files-${claim}`.slice(0, 63).replace(/[-.]+$/, '')

export const isExplorer = (pod: KubeObject): boolean => pod.metadata.labels?.[EXPLORES] !== undefined

export const explorerOf = (claim: string, pods: readonly KubeObject[]): KubeObject | undefined =>
  pods.find((pod) => pod.metadata.annotations?.[EXPLORES] === claim && isExplorer(pod))

export const hasEnded = (pod: KubeObject): boolean => ['Succeeded', 'Failed'].includes(field(pod, 'status.phase') as string) || pod.metadata.deletionTimestamp !== undefined

export function explorerPod(claim: KubeObject, image: string): KubeObject {
  const name = claim.metadata.name
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    // A label's value has at most 63 characters, a claim's name 253: the name stands in an annotation.
    metadata: { name: explorerName(name), labels: { [EXPLORES]: 'true' }, annotations: { [EXPLORES]: name } },
    spec: {
      restartPolicy: 'Never',
      activeDeadlineSeconds: LIFE_S,
      automountServiceAccountToken: false,
      terminationGracePeriodSeconds: 1,
      containers: [
        {
          name: CONTAINER,
          image,
          imagePullPolicy: 'IfNotPresent',
          command: ['python3', '-c', `import time; time.sleep(${LIFE_S})`],
          resources: { requests: { cpu: '10m', memory: '32Mi' }, limits: { cpu: '1', memory: '256Mi' } },
          volumeMounts: [{ name: 'volume', mountPath: ROOT }],
        },
      ],
      volumes: [{ name: 'volume', persistentVolumeClaim: { claimName: name } }],
    },
  }
}

export const placeOf = (pod: KubeObject): { namespace: string; pod: string; container: string } => ({ namespace: pod.metadata.namespace ?? '', pod: pod.metadata.name, container: CONTAINER })

export const join = (folder: string, name: string): string => `${folder.replace(/\/$/, '')}/${name}`

/** `/files/a/b` → [['a', '/files/a'], ['b', '/files/a/b']] */
export const crumbsOf = (folder: string): [string, string][] => {
  const parts = folder.slice(ROOT.length).split('/').filter(Boolean)
  return parts.map((part, index) => [part, [ROOT, ...parts.slice(0, index + 1)].join('/')])
}

export type Preview = 'image' | 'events' | 'text'

const IMAGE_TYPES: Record<string, string> = { png: 'image/png', jpg: 'image/jpeg', jpeg: 'image/jpeg', gif: 'image/gif', webp: 'image/webp', bmp: 'image/bmp', svg: 'image/svg+xml' }

export const imageType = (name: string): string | undefined => IMAGE_TYPES[name.split('.').at(-1)?.toLowerCase() ?? '']

export function previewOf(name: string): Preview {
  if (/events\.out\.tfevents/.test(name)) return 'events'
  return imageType(name) ? 'image' : 'text'
}

/** Text, or undefined when it is not: what has a zero byte or is no UTF-8 (a character cut at the end does not count). */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes, { stream: true })
  } catch {
    return undefined
  }
}
