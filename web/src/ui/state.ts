/** The state of an object in the words of the documents, with its reason. Pure. */
import { conditionOf, conditionsOf, field, isTrue, type KubeObject } from '../kube'

export type Tone = 'good' | 'busy' | 'waiting' | 'bad' | 'quiet'

export interface State {
  /** Running, Succeeded, Failed, …: the same word in both languages, as the documents have it */
  word: string
  tone: Tone
  reason?: string | undefined
  message?: string | undefined
}

const TONES: Record<string, Tone> = {
  Running: 'busy',
  Ready: 'good',
  Bound: 'good',
  Active: 'good',
  Available: 'good',
  Succeeded: 'good',
  Completed: 'good',
  Done: 'good',
  Failed: 'bad',
  Error: 'bad',
  Lost: 'bad',
  NotReady: 'bad',
  CrashLoopBackOff: 'bad',
  ImagePullBackOff: 'bad',
  ErrImagePull: 'bad',
  Pending: 'waiting',
  Creating: 'waiting',
  Created: 'waiting',
  Initializing: 'waiting',
  Resuming: 'waiting',
  Restarting: 'waiting',
  Queued: 'waiting',
  Paused: 'quiet',
  Suspended: 'quiet',
  Terminating: 'quiet',
  Deleted: 'quiet',
  Unknown: 'quiet',
}

export const toneOf = (word: string): Tone => TONES[word] ?? (/Err|Fail|BackOff|Invalid|OOM/.test(word) ? 'bad' : 'quiet')

export function stateOf(object: KubeObject): State {
  const state = byKind(object)
  if (object.metadata.deletionTimestamp) return { ...state, word: 'Terminating', tone: 'quiet' }
  return state
}

function byKind(object: KubeObject): State {
  switch (object.kind) {
    case 'Pod':
      return podState(object)
    case 'Node':
      return nodeState(object)
    case 'PyTorchJob':
    case 'TFJob':
      return jobWords(kubeflowState(object))
    case 'PyTorchTrainingJob':
    case 'TensorFlowTrainingJob':
    case 'TensorFlowJob':
      return jobWords(phaseState(object))
    default:
      return phaseState(object)
  }
}

const make = (word: string, reason?: string, message?: string): State => ({ word, tone: toneOf(word), reason: reason || undefined, message: message || undefined })

function phaseState(object: KubeObject): State {
  const phase: string = field(object, 'status.phase') ?? 'Pending'
  if (phase === 'Failed') {
    const failed = conditionOf(object, 'Failed') ?? conditionOf(object, 'ReplicaFailure')
    return make('Failed', failed?.reason, failed?.message)
  }
  if (phase === 'Pending' || phase === 'Initializing' || phase === 'Resuming') {
    const waits = conditionsOf(object).find((each) => ['Running', 'Ready', 'Initialized'].includes(each.type) && each.status === 'False' && each.message)
    return make(phase, waits?.reason, waits?.message)
  }
  return make(phase)
}

/** Kubeflow's jobs have conditions and no phase. */
function kubeflowState(object: KubeObject): State {
  for (const word of ['Failed', 'Succeeded', 'Suspended', 'Restarting', 'Running', 'Created']) {
    if (isTrue(object, word)) {
      const condition = conditionOf(object, word)
      return make(word, word === 'Running' || word === 'Succeeded' ? undefined : condition?.reason, word === 'Failed' || word === 'Restarting' ? condition?.message : undefined)
    }
  }
  return make('Pending')
}

/** Jobs end as Done or Error in the documents; the phase that kubectl shows stands beside it as the reason. */
function jobWords(state: State): State {
  if (state.word === 'Succeeded') return { ...state, word: 'Done', reason: 'Succeeded' }
  if (state.word === 'Failed') return { ...state, word: 'Error', reason: 'Failed' }
  return state
}

interface ContainerStatus {
  name: string
  ready?: boolean
  restartCount?: number
  state?: { waiting?: { reason?: string; message?: string }; terminated?: { reason?: string; message?: string; exitCode: number }; running?: object }
  lastState?: ContainerStatus['state']
}

export const containerStatuses = (pod: KubeObject): ContainerStatus[] => [
  ...((field(pod, 'status.initContainerStatuses') as ContainerStatus[] | undefined) ?? []),
  ...((field(pod, 'status.containerStatuses') as ContainerStatus[] | undefined) ?? []),
]

function podState(pod: KubeObject): State {
  const phase: string = field(pod, 'status.phase') ?? 'Pending'
  for (const { name, state } of containerStatuses(pod)) {
    const waiting = state?.waiting
    if (waiting?.reason && !['ContainerCreating', 'PodInitializing'].includes(waiting.reason)) return { ...make(waiting.reason, undefined, waiting.message), tone: 'bad' }
    const ended = state?.terminated
    if (ended && ended.exitCode !== 0 && phase !== 'Succeeded') return make('Failed', ended.reason ?? 'Error', ended.message ?? `${name}: exit code ${ended.exitCode}`)
  }
  if (phase === 'Failed') return make('Failed', field(pod, 'status.reason'), field(pod, 'status.message'))
  if (phase === 'Pending') {
    const scheduled = conditionOf(pod, 'PodScheduled')
    if (scheduled?.status === 'False') return make('Pending', scheduled.reason, scheduled.message)
  }
  return make(phase, field(pod, 'status.reason'), field(pod, 'status.message'))
}

function nodeState(node: KubeObject): State {
  const ready = conditionOf(node, 'Ready')
  const unschedulable = field(node, 'spec.unschedulable') === true
  return make(ready?.status === 'True' ? 'Ready' : 'NotReady', unschedulable ? 'SchedulingDisabled' : ready?.status === 'True' ? undefined : ready?.reason, ready?.status === 'True' ? undefined : ready?.message)
}
