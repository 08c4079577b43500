/** What pods use. metrics.k8s.io knows only the present, so a project is sampled while the console is open at any of its pages. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { podUsage, type Usage } from '../../kube'
import { added, type Sample } from './samples'

const LOOKING_MS = 5_000 // while somebody looks at the lines
const BEHIND_MS = 15_000 // on other pages: as often as metrics-server itself measures
const MANY = 500 // pods of a project from which on only what is looked at is kept

// Kept while the browser's tab is open: whoever comes to a page finds the lines drawn already.
const histories = new Map<string, readonly Sample[]>()

/** Called once by the frame. */
export function useUsageSampling(namespace: string): void {
  useSamples(namespace, BEHIND_MS)
}

function useSamples(namespace: string, every: number): { samples: readonly Sample[]; absent: boolean } {
  const [, tick] = useState(0)
  const looking = every === LOOKING_MS
  const { data, dataUpdatedAt, isSuccess } = useQuery({
    queryKey: ['usage', namespace],
    queryFn: () => podUsage({ namespace }),
    enabled: namespace !== '',
    refetchInterval: (query) => (query.state.data === null ? 20 * BEHIND_MS : every),
    staleTime: LOOKING_MS - 1_000,
    retry: false,
  })
  useEffect(() => {
    if (!data || (!looking && data.length > MANY)) return
    const before = histories.get(namespace) ?? []
    const after = added(before, { time: dataUpdatedAt / 1000, pods: new Map(data.map(({ name, cpu, memory }): [string, Usage] => [name, { cpu, memory }])) })
    if (after === before) return
    histories.set(namespace, after)
    tick((value) => value + 1)
  }, [namespace, data, dataUpdatedAt, looking])
  return { samples: histories.get(namespace) ?? [], absent: isSuccess && data === null }
}

export interface UsageHistory {
  /** seconds since 1970 */
  times: readonly number[]
  /** the cluster serves no metrics.k8s.io */
  absent: boolean
  /** those of which anything is known */
  pods: readonly string[]
  of: (pod: string, resource: 'cpu' | 'memory') => (number | null)[]
}

/** The lines of the pods with these names, from the first moment at which any of them was seen. */
export function useUsageHistory(namespace: string, names: readonly string[]): UsageHistory {
  const { samples, absent } = useSamples(namespace, LOOKING_MS)
  const wanted = names.join()
  return useMemo(() => {
    const known = names.filter((name) => samples.some((sample) => sample.pods.has(name)))
    const from = samples.findIndex((sample) => known.some((name) => sample.pods.has(name)))
    const seen = from < 0 ? [] : samples.slice(from)
    return {
      times: seen.map((sample) => sample.time),
      absent,
      pods: known,
      of: (pod, resource) => seen.map((sample) => sample.pods.get(pod)?.[resource] ?? null),
    }
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `wanted` says all of `names`
  }, [samples, absent, wanted])
}
