/** What pods use, sampled while a page is open: metrics.k8s.io knows only the present. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useState } from 'react'
import { podUsage, type PodUsage, type Selection } from '../kube'

const EVERY_MS = 5_000
const KEPT = 720 // an hour

interface Sample {
  time: number
  pods: Map<string, PodUsage>
}

// Kept while the console is open, so that coming back to a page continues its lines.
const histories = new Map<string, Sample[]>()

export interface UsageHistory {
  /** seconds since 1970 */
  times: readonly number[]
  /** the cluster serves no metrics.k8s.io */
  absent: boolean
  pods: readonly string[]
  of: (pod: string, resource: 'cpu' | 'memory') => (number | null)[]
}

export function useUsageHistory(selection: Selection): UsageHistory {
  const key = JSON.stringify(selection)
  const [, tick] = useState(0)
  const query = useQuery({ queryKey: ['usage', key], queryFn: () => podUsage(selection), refetchInterval: EVERY_MS, staleTime: 0 })
  useEffect(() => {
    if (!query.data) return
    const history = histories.get(key) ?? []
    history.push({ time: query.dataUpdatedAt / 1000, pods: new Map(query.data.map((each) => [each.name, each])) })
    if (history.length > KEPT) history.shift()
    histories.set(key, history)
    tick((value) => value + 1)
  }, [key, query.data, query.dataUpdatedAt])
  const samples = histories.get(key) ?? []
  const count = samples.length
  return useMemo(
    () => ({
      times: samples.map((sample) => sample.time),
      absent: query.isSuccess && query.data === null,
      pods: [...new Set(samples.flatMap((sample) => [...sample.pods.keys()]))].sort(),
      of: (pod, resource) => samples.map((sample) => sample.pods.get(pod)?.[resource] ?? null),
    }),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `samples` grows in place; its length says so
    [key, count, query.isSuccess, query.data],
  )
}
