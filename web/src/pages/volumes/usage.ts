/** Who uses a claim: pods that have not ended, and the notebooks and jobs that name it. Pure. */
import { claimNames, field, type KubeObject } from '../../kube'
import { isExplorer } from './files/explorer'

const ENDED = new Set(['Succeeded', 'Failed'])

/** Pods that run with it now: deleting the claim would wait for them. The file browser's own pod goes with the claim. */
export const podsUsing = (claim: KubeObject, pods: readonly KubeObject[]): KubeObject[] =>
  pods.filter((pod) => !isExplorer(pod) && !ENDED.has(field(pod, 'status.phase')) && claimNames(pod.spec).includes(claim.metadata.name))
