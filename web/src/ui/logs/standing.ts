/** How a container stands, as its pod tells it: which of its starts the log is of, and whether another may come. Pure. */
import { field, type KubeObject } from '../../kube'
import { containerStatuses, stateOf } from '../state'

export interface Standing {
  /** the log is of this start; another one writes another log */
  start: string
  begun: boolean
  running: boolean
  /** it will not be started again */
  over: boolean
  /** why it does not run */
  message: string
}

interface Container {
  name: string
  restartPolicy?: string
}

/** Of the container of that name, or of the pod's first where none is named. */
export function containerStanding(pod: KubeObject, name: string | undefined): Standing {
  const usual = (field(pod, 'spec.containers') ?? []) as Container[]
  const init = (field(pod, 'spec.initContainers') ?? []) as Container[]
  const container = [...usual, ...init].find((each) => each.name === (name ?? each.name))
  const status = containerStatuses(pod).find((each) => each.name === container?.name)
  const { waiting, running, terminated } = status?.state ?? {}
  const ended = terminated ?? (waiting && status?.lastState?.terminated)
  const ofPod: string = field(pod, 'spec.restartPolicy') ?? 'Always'
  // An init container that did its work is not started again.
  const policy = container?.restartPolicy ?? (container && init.includes(container) && ofPod === 'Always' ? 'OnFailure' : ofPod)
  const again = policy === 'Always' || (policy === 'OnFailure' && terminated?.exitCode !== 0)
  const leaving = pod.metadata.deletionTimestamp !== undefined
  const state = stateOf(pod)
  return {
    start: `${pod.metadata.uid} ${status?.restartCount ?? 0}`,
    begun: running !== undefined || ended !== undefined,
    running: running !== undefined,
    over: ['Succeeded', 'Failed'].includes(field(pod, 'status.phase') ?? '') || (terminated !== undefined && (leaving || !again)),
    message: waiting?.message ?? waiting?.reason ?? (ended && `${ended.reason ?? 'Error'}, exit code ${ended.exitCode}`) ?? state.message ?? state.word,
  }
}
