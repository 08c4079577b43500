/** What was measured since the tab was opened. metrics.k8s.io knows only the present, so the past is kept here. Pure but for its table. */
import type { PodUsage } from '../../kube'
import { podSum } from '../../kube/quantity'
import type { Role } from './reading'

const MOST = 720 // an hour at 5 s

type Resource = 'cpu' | 'memory'

export class History {
  times: number[] = []
  private measured: Map<string, { cpu: number; memory: number }>[] = []

  add(time: number, usage: readonly PodUsage[]): void {
    this.times = [...this.times, time].slice(-MOST)
    this.measured = [...this.measured, new Map(usage.map((each) => [each.name, each]))].slice(-MOST)
  }

  names(): string[] {
    return [...new Set(this.measured.flatMap((each) => [...each.keys()]))].sort()
  }

  values(name: string, resource: Resource): (number | null)[] {
    return this.measured.map((each) => each.get(name)?.[resource] ?? null)
  }
}

const known = new Map<string, History>()

export function historyOf(uid: string): History {
  let history = known.get(uid)
  if (history === undefined) {
    history = new History()
    known.set(uid, history)
  }
  return history
}

/** Requests and limits of one replica of each role; roles that ask for the same share a line. */
export function boundsOf(roles: readonly Role[], resource: Resource): { role: string; bound: 'request' | 'limit'; value: number }[] {
  const found = new Map<string, { role: string; bound: 'request' | 'limit'; value: number }>()
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
