/** Quotas as bars: pure. Several ResourceQuotas may limit the same thing; the tightest counts. */
import { bytes, cores, field, isDevice, quantity, type KubeObject } from '../../kube'

export interface Bar {
  resource: string
  used: number
  hard: number
  /** 0…; above 1 when a quota was lowered below what is used */
  share: number
}

export const WARNING_SHARE = 0.8

const ORDER = ['requests.cpu', 'cpu', 'limits.cpu', 'requests.memory', 'memory', 'limits.memory', 'gpu', 'requests.storage', 'persistentvolumeclaims', 'pods']

const rank = (resource: string): number => {
  const at = ORDER.indexOf(isDevice(resource) ? 'gpu' : resource)
  return at < 0 ? ORDER.length : at
}

export function bars(quotas: readonly KubeObject[]): Bar[] {
  const tightest = new Map<string, Bar>()
  for (const quota of quotas) {
    const hard = (field(quota, 'status.hard') ?? field(quota, 'spec.hard') ?? {}) as Record<string, string>
    for (const [resource, limit] of Object.entries(hard)) {
      const used = quantity(field(quota, 'status.used')?.[resource])
      const most = quantity(limit)
      const share = most === 0 ? (used > 0 ? Infinity : 1) : used / most
      const before = tightest.get(resource)
      if (!before || share > before.share) tightest.set(resource, { resource, used, hard: most, share })
    }
  }
  return [...tightest.values()].sort((a, b) => rank(a.resource) - rank(b.resource) || (a.resource < b.resource ? -1 : 1))
}

export function formatAmount(resource: string, amount: number): string {
  if (/memory|storage$/.test(resource) && !resource.endsWith('persistentvolumeclaims')) return bytes(amount)
  if (/cpu$/.test(resource)) return cores(amount)
  return String(amount)
}
