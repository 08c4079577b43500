/** Why an object waits or failed, and what to do: pure. Object, its pods and their events in; words out. */
import type { Parameters, Text } from '../i18n/words'
import { conditionOf, conditionsOf, field, isTrue, type KubeObject } from '../kube/types'
import { words } from './words'

type Key = keyof typeof words

export interface Why {
  cause: Text
  nextStep: Text
  parameters: Parameters
  failed: boolean
  /** whose last log lines tell more */
  log?: { pod: string; container: string; previous: boolean }
}

const say = (key: Key & string, parameters: Parameters = {}, more: Partial<Why> = {}): Why => ({
  cause: words[key],
  nextStep: words[`${key}Next` as Key],
  parameters,
  failed: false,
  ...more,
})

/** undefined: nothing is wrong and nothing waits. */
export function why(object: KubeObject, pods: readonly KubeObject[] = [], events: readonly KubeObject[] = [], claims: readonly KubeObject[] = []): Why | undefined {
  if (object.kind === 'PersistentVolumeClaim') return whyClaim(object, events)
  if (object.kind === 'Pod') return whyPod(object, events, claims)
  if (object.kind === 'Node') return isTrue(object, 'Ready') ? undefined : say('nodeLost', { node: object.metadata.name }, { failed: true })
  return whyOwner(object, pods, events, claims)
}

function whyOwner(object: KubeObject, pods: readonly KubeObject[], events: readonly KubeObject[], claims: readonly KubeObject[]): Why | undefined {
  const phase: string = field(object, 'status.phase') ?? ''
  if (phase === 'Succeeded' || isTrue(object, 'Succeeded')) return undefined
  if (phase === 'Paused') return say('paused')
  if (phase === 'Suspended' || isTrue(object, 'Suspended')) return say('suspended')
  const failed = phase === 'Failed' || (isTrue(object, 'Failed') && !phase)
  const failure = conditionsOf(object).find((each) => ['Failed', 'ReplicaFailure'].includes(each.type) && each.status === 'True')
  if (failed && failure?.message && /deadline|activeDeadlineSeconds/i.test(`${failure.reason} ${failure.message}`)) return say('deadline', { message: failure.message }, { failed: true })
  // The pod that is worst off speaks for all.
  const found = pods.map((pod) => whyPod(pod, events, claims)).filter((each) => each !== undefined)
  const worst = found.find((each) => each.failed) ?? found[0]
  if (worst && (failed || phase !== 'Running' || worst.failed)) return { ...worst, failed: failed || worst.failed }
  if (failed) return whyEnded(conditionsOf(object).map((each) => each.message ?? '')) ?? say('said', { message: failure?.message ?? 'Failed' }, { failed: true })
  const blocked = conditionOf(object, 'Blocked')
  if (blocked?.status === 'True' && blocked.message) return byCondition(blocked.message, object.metadata.name)
  const lost = /Pod\[([\w.-]+)\] exited with error code (\d+)/.exec(failure?.message ?? '')
  if (lost) return say('replicaLost', { pod: lost[1]!, code: lost[2]! })
  // Some of its replicas run, and others cannot even be made.
  const running = conditionOf(object, 'Running')
  if (phase === 'Running' && running?.status === 'False' && running.reason === 'FailedCreatePod' && running.message) return byCondition(running.message, object.metadata.name)
  if (phase === 'Running' || isTrue(object, 'Running') || isTrue(object, 'Ready')) return undefined
  // What makes its pods (a StatefulSet) says why it cannot; the object itself only says that there is none yet.
  const refused = pods.length === 0 ? events.find((event) => event.reason === 'FailedCreate') : undefined
  if (refused) return byMessage(messageOf(refused), object.metadata.name) ?? say('said', { message: messageOf(refused) })
  const waits = conditionsOf(object).find((each) => ['Running', 'Ready', 'Initialized', 'Created'].includes(each.type) && each.status === 'False' && each.message)
  if (waits?.message) return byCondition(waits.message, object.metadata.name)
  const warning = events.find((event) => event.type === 'Warning' && involvedUid(event) === object.metadata.uid)
  if (warning) return byMessage(messageOf(warning), object.metadata.name) ?? say('said', { message: messageOf(warning) })
  return pods.length === 0 ? say('noPods') : undefined
}

/** A job's condition names the pod that it speaks of: "Pod mnist-0: 0/1 nodes are available". */
function byCondition(message: string, name: string): Why {
  const told = /^Pod ([\w.-]+)(?:, container [\w.-]+)?: (.*)$/s.exec(message)
  const plain = withoutPreemption(told?.[2] ?? message)
  return byMessage(plain, told?.[1] ?? name) ?? say('said', { message: plain })
}

/** That nothing can be taken from others either is of no use to people. */
const withoutPreemption = (message: string): string => message.replace(/ preemption: .*?(?=( \(and \d+ more\))?$)/s, '')

/** A job that ended tells which replica died, its code, and the end of its log, of which the last line says most. */
function whyEnded(messages: readonly string[]): Why | undefined {
  for (const message of messages) {
    const told = /([\w.-]+) (?:failed|ended) with exit code (\d+)[^\n]*(?:\n([\s\S]*))?$/.exec(message)
    if (!told) continue
    const line = (told[3] ?? '').trim().split('\n').at(-1) ?? ''
    const parameters = { pod: told[1]!, code: told[2]!, line }
    return say(line ? 'replicaExited' : 'replicaExitedSilently', parameters, { failed: true })
  }
  return undefined
}

interface ContainerStatus {
  name: string
  image?: string
  restartCount?: number
  state?: { waiting?: { reason?: string; message?: string }; terminated?: Ended }
  lastState?: { terminated?: Ended }
}

interface Ended {
  exitCode: number
  reason?: string
  message?: string
}

function whyPod(pod: KubeObject, events: readonly KubeObject[], claims: readonly KubeObject[]): Why | undefined {
  const name = pod.metadata.name
  const phase: string = field(pod, 'status.phase') ?? 'Pending'
  if (phase === 'Succeeded') return undefined
  const reason: string = field(pod, 'status.reason') ?? ''
  if (/Evicted|Preempt/.test(reason)) return say('evicted', { pod: name, message: field(pod, 'status.message') ?? reason }, { failed: true })
  const statuses = [...(field(pod, 'status.initContainerStatuses') ?? []), ...(field(pod, 'status.containerStatuses') ?? [])] as ContainerStatus[]
  for (const status of statuses) {
    const answer = whyContainer(name, status, phase)
    if (answer) return answer
  }
  if (phase === 'Failed') return say('said', { message: field(pod, 'status.message') || reason || 'Failed' }, { failed: true })
  const scheduled = conditionOf(pod, 'PodScheduled')
  if (scheduled?.status === 'False') return whyNotPlaced(pod, scheduled.message ?? '', claims)
  if (phase !== 'Pending') return undefined
  const warning = events.find((event) => event.type === 'Warning' && involvedUid(event) === pod.metadata.uid)
  if (warning) return byMessage(messageOf(warning), name) ?? say('starting', { pod: name, message: messageOf(warning) })
  const waiting = statuses.find((status) => status.state?.waiting)?.state?.waiting
  const latest = events.find((event) => involvedUid(event) === pod.metadata.uid)
  return say('starting', { pod: name, message: waiting?.message ?? (latest ? messageOf(latest) : (waiting?.reason ?? phase)) })
}

function whyContainer(pod: string, status: ContainerStatus, phase: string): Why | undefined {
  const waiting = status.state?.waiting
  const container = status.name
  if (waiting?.reason && /ImagePull|InvalidImage|ImageInspect|RegistryUnavailable/.test(waiting.reason)) {
    return say('image', { image: status.image ?? '', message: waiting.message ?? waiting.reason }, { failed: true })
  }
  if (waiting?.reason === 'CreateContainerConfigError') return say('config', { pod, message: waiting.message ?? '' }, { failed: true })
  const before = status.lastState?.terminated
  if (waiting?.reason === 'CrashLoopBackOff') {
    const crash = before && endedWords(pod, container, before)
    if (crash && crash.key !== 'exited') return say(crash.key, crash.parameters, { failed: true, log: { pod, container, previous: true } })
    return say('crash', { pod, container, code: before?.exitCode ?? '?' }, { failed: true, log: { pod, container, previous: true } })
  }
  const ended = status.state?.terminated
  if (ended && ended.exitCode !== 0 && phase !== 'Succeeded') {
    const { key, parameters } = endedWords(pod, container, ended)
    return say(key, parameters, { failed: true, log: { pod, container, previous: false } })
  }
  return undefined
}

function endedWords(pod: string, container: string, ended: Ended): { key: 'outOfMemory' | 'code127' | 'killed' | 'exited'; parameters: Parameters } {
  const parameters = { pod, container, code: ended.exitCode }
  if (ended.reason === 'OOMKilled') return { key: 'outOfMemory', parameters: { pod, container } }
  if (ended.exitCode === 127) return { key: 'code127', parameters: { pod, container } }
  if (ended.exitCode === 137 || ended.exitCode === 143) return { key: 'killed', parameters }
  return { key: 'exited', parameters }
}

function whyNotPlaced(pod: KubeObject, said: string, claims: readonly KubeObject[]): Why {
  const message = withoutPreemption(said)
  const known = byMessage(message, pod.metadata.name)
  if (known) return known
  const used = ((field(pod, 'spec.volumes') ?? []) as { persistentVolumeClaim?: { claimName: string } }[]).flatMap((volume) => volume.persistentVolumeClaim?.claimName ?? [])
  const pending = claims.find((claim) => used.includes(claim.metadata.name) && field(claim, 'status.phase') === 'Pending')
  if (pending && /unbound|not bound/.test(message)) return say('claimPending', { claim: pending.metadata.name, message })
  return say('unschedulable', { pod: pod.metadata.name, message })
}

/** What schedulers, quotas and controllers write is known well enough to be explained. */
export function byMessage(message: string, pod: string): Why | undefined {
  const claim = /persistentvolumeclaim "?([\w.-]+)"? (?:not found|does not exist)|claim "?([\w.-]+)"? does not exist/i.exec(message)
  if (claim) return say('claimMissing', { claim: claim[1] ?? claim[2] ?? '' })
  if (/^\S+ "[^"]+" already exists$/.test(message)) return say('nameTaken', { message })
  if (/^namespaces "[^"]+" not found$/.test(message)) return say('noProject', { message })
  if (/is forbidden: User "[^"]*" cannot /.test(message)) return say('noRight', { message })
  if (/queue [\w.-]+ is closed/i.test(message)) return say('queueClosed', { message })
  if (/queue [\w.-]+ does not exist/i.test(message)) return say('queueMissing', { message })
  if (/may not use queue/i.test(message)) return say('queueForbidden', { message })
  if (/never will be as they are|can never run in queue/.test(message)) return say('never', { message })
  if (/quota of queue|queue's quota/i.test(message)) return say('queueQuota', { message })
  if (/failed quota.*must specify/i.test(message)) return say('quotaAsks', { message })
  if (/exceeded quota/i.test(message)) return say('quota', { message })
  if (/unbound immediate PersistentVolumeClaims/i.test(message)) return say('claimPending', { claim: '', message })
  if (/pod ?group|group [\w.-]+ (waits|can never|needs)|minMember|minAvailable|gang/i.test(message)) return say('gang', { message })
  if (/Insufficient [\w.-]*\/?\w*gpu/i.test(message)) return say('gpu', { message })
  if (/Insufficient \w+|Too many pods/i.test(message)) return say('unschedulable', { pod, message })
  if (/didn't match|untolerated taint|node affinity|node\(s\) (?:had|were)/i.test(message)) return say('selector', { message })
  const image = /(?:Failed to pull|Back-off pulling|failed to resolve) image "?([^"\s]+)"?/i.exec(message)
  if (image) return say('image', { image: image[1]!, message }, { failed: true })
  if (/(secret|configmap) "?[\w.-]+"? not found/i.test(message)) return say('config', { pod, message }, { failed: true })
  return undefined
}

function whyClaim(claim: KubeObject, events: readonly KubeObject[]): Why | undefined {
  if (field(claim, 'status.phase') !== 'Pending') return undefined
  const about = events.filter((event) => involvedUid(event) === claim.metadata.uid)
  if (about.some((event) => event.reason === 'WaitForFirstConsumer')) return say('claimWaitsForUser')
  const warning = about.find((event) => event.type === 'Warning')
  const message = warning ? messageOf(warning) : ''
  if (/storageclass.*not found/i.test(message)) return say('claimNoClass', { class: field(claim, 'spec.storageClassName') ?? '' }, { failed: true })
  return say('claimPending', { claim: claim.metadata.name, message: message || (about[0] ? messageOf(about[0]) : 'Pending') })
}

const involvedUid = (event: KubeObject): string | undefined => (event.involvedObject ?? event.regarding)?.uid as string | undefined

const messageOf = (event: KubeObject): string => String(event.message ?? event.note ?? event.reason ?? '')
