/** Samples of what pods use, oldest first. Pure. */
import type { Usage } from '../../kube/metrics'

export interface Sample {
  /** seconds since 1970 */
  time: number
  pods: ReadonlyMap<string, Usage>
}

const KEPT_S = 3_600

/** Several parts of a page may bring the same answer; what is older than an hour goes. */
export function added(samples: readonly Sample[], sample: Sample): readonly Sample[] {
  const last = samples.at(-1)
  if (last && sample.time <= last.time) return samples
  return [...samples.filter((each) => each.time > sample.time - KEPT_S), sample]
}
