/** The phase of a container, as its pod tells it: which of its starts the log is of, and whether another may come. Pure. */
import { field, type KubeObject } from '../../kube'
import { containerStatuses, stateOf, unplaced } from '../state'

export interface ContainerPhase {
  /** the log is of this start; another one writes another log */
  start: string
  begun: boolean
  running: boolean
  /** it will not be started again */
  over: boolean
  /** why it does not run */
  message: string
  /** with which it ended, where the message is only the reason of that */
  exitCode?: number
}

interface Container {
  name: string
  restartPolicy?: string
}

/** Of the container of that name, or of the pod's first where none is named. */
export function containerPhase(pod: KubeObject, name: string | undefined): ContainerPhase {
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
  const told = waiting?.message ?? waiting?.reason
  return {
    start: `${pod.metadata.uid} ${status?.restartCount ?? 0}`,
    begun: running !== undefined || ended !== undefined,
    running: running !== undefined,
    over: ['Succeeded', 'Failed'].includes(field(pod, 'status.phase') ?? '') || (terminated !== undefined && (leaving || !again)),
    message: told ?? (ended && (ended.reason ?? 'Error')) ?? field(pod, 'status.message') ?? unplaced(pod)?.message ?? stateOf(pod).word,
    ...(told === undefined && ended ? { exitCode: ended.exitCode } : {}),
  }
}
