/** Requests and limits as lines of a chart. Pure. */
import { podSum } from '../../kube/quantity'
import type { Role } from './reading'

export interface Bound {
  /** the roles it holds for */
  role: string
  bound: 'request' | 'limit'
  value: number
}

/** Of one replica of each role; roles that ask for the same share a line. */
export function boundsOf(roles: readonly Role[], resource: 'cpu' | 'memory'): Bound[] {
  const found = new Map<string, Bound>()
  for (const role of roles) {
    const { requests, limits } = podSum(role.spec)
    for (const [bound, value] of [['request', requests[resource]], ['limit', limits[resource]]] as const) {
      if (!value) continue
      const key = `${bound} ${value}`
      const same = found.get(key)
      found.set(key, { role: same ? `${same.role}, ${role.name}` : role.name, bound, value })
    }
  }
  return [...found.values()].sort((a, b) => a.bound.localeCompare(b.bound))
}
