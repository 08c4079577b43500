/** The state of an object in the words of the documents, with its reason. Pure. */
import type { Text } from '../i18n/words'
import { describe, type CaseSpec, type Description, type StateSpec, type Tone } from '../kinds/description'
import { conditionOf, conditionsOf, field, isTrue, type Condition, type KubeObject } from '../kube'

export type { Tone } from '../kinds/description'

export interface State {
  /** Running, Succeeded, Failed, …: the same word in both languages, as the documents have it */
  word: string
  /** where it is not the same in both; `word` is the English one */
  text?: Text
  tone: Tone
  reason?: string | undefined
  message?: string | undefined
  /** the console's own words for the reason */
  because?: Text
}

/** Of Kubernetes' own kinds. The platform's say in their folders what their states look like. */
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
  if (object.kind === 'Pod') return podState(object)
  if (object.kind === 'Node') return nodeState(object)
  const said = describe(object.kind)
  if (said?.cases) return caseState(object, said.cases)
  const state = said?.conditions ? conditionState(object, said) : phaseState(object)
  return said ? inItsWords(state, said) : state
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

const stateSpec = (said: Description, word: string): StateSpec | undefined => {
  const found = said.states?.[word]
  return typeof found === 'string' ? { tone: found } : found
}

/** The first condition that is true, of those that the kind names; the strongest stands first. */
function conditionState(object: KubeObject, said: Description): State {
  for (const word of Object.keys(said.states ?? {})) {
    if (!isTrue(object, word)) continue
    const condition = conditionOf(object, word)
    const { tone, said: told } = stateSpec(said, word)!
    return make(word, tone === 'good' || tone === 'busy' ? undefined : condition?.reason, told ? condition?.message : undefined)
  }
  return make('Pending')
}

/** Jobs end as Done or Error in the documents; the word that kubectl shows stands beside it as the reason. */
function inItsWords(state: State, said: Description): State {
  const own = stateSpec(said, state.word)
  if (!own) return state
  return { ...state, tone: own.tone, ...(own.word ? { word: own.word, reason: state.word } : {}) }
}

function caseState(object: KubeObject, cases: readonly CaseSpec[]): State {
  const holds = (each: CaseSpec): boolean => {
    const value: unknown = each.condition ? conditionOf(object, each.condition)?.status : field(object, each.path ?? '')
    return 'is' in each ? value === each.is : 'not' in each ? value !== each.not : true
  }
  const found = cases.find(holds)
  if (!found) return make('Unknown')
  const condition = found.tone !== 'good' && found.condition ? conditionOf(object, found.condition) : undefined
  return { word: found.word.en, text: found.word, tone: found.tone, reason: condition?.reason || undefined, message: condition?.message || undefined, ...(found.reason ? { because: found.reason } : {}) }
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

/** The word that kubectl shows as a pod's STATUS. Why it is so is not worked out here: `usePodCauses`. */
function podState(pod: KubeObject): State {
  const phase: string = field(pod, 'status.phase') ?? 'Pending'
  for (const { state } of containerStatuses(pod)) {
    const waiting = state?.waiting?.reason
    if (waiting && !['ContainerCreating', 'PodInitializing'].includes(waiting)) return { ...make(waiting), tone: 'bad' }
    if (state?.terminated && state.terminated.exitCode !== 0 && phase !== 'Succeeded') return make('Failed', state.terminated.reason ?? 'Error')
  }
  return make(phase, field(pod, 'status.reason') ?? (phase === 'Pending' ? unplaced(pod)?.reason : undefined))
}

/** What the scheduler said of it, as long as it has no node. */
export function unplaced(pod: KubeObject): Condition | undefined {
  const scheduled = conditionOf(pod, 'PodScheduled')
  return scheduled?.status === 'False' ? scheduled : undefined
}

function nodeState(node: KubeObject): State {
  const ready = conditionOf(node, 'Ready')
  const unschedulable = field(node, 'spec.unschedulable') === true
  return make(ready?.status === 'True' ? 'Ready' : 'NotReady', unschedulable ? 'SchedulingDisabled' : ready?.status === 'True' ? undefined : ready?.reason, ready?.status === 'True' ? undefined : ready?.message)
}
