/** Pause, resume, debug mode, clone, delete: the same in the list and on the job's page. */
import type { ActionPart, ActionProps, DeletingPart, Hands } from '../../kinds/features'
import { field, getObject, patchObject, type Kind, type KubeObject } from '../../kube'
import { pathOf } from '../../ui/paths'
import type { Action } from '../../ui/table/ResourceTable'
import { bothPatch, canDebug, debugPatch, hasBoardBeside, hasEnded, isDebugging, isPaused, pausePatch, rolesOf, wantsBoard } from './reading'
import { words } from './words'

const STOP_S = 60

function pause({ object: job, kind }: ActionProps, { t, run, confirm }: Hands): Action[] {
  if (hasEnded(job)) return []
  const { name, namespace } = job.metadata
  const patch = (paused: boolean): Promise<unknown> => patchObject(kind, namespace, name, pausePatch(job, paused))
  const resume = (): void => void run(() => patch(false), t(words.resumed, { name }))
  const stop = (): void =>
    confirm({ title: t(words.pauseTitle, { name }), content: t(words.pauseHelp), okText: t(words.pause), onOk: () => run(() => patch(true), t(words.paused, { name })) })
  // One key for both ways: the button keeps focus while its word changes.
  return [isPaused(job) ? { key: 'pause', label: t(words.resume), onClick: resume } : { key: 'pause', label: t(words.pause), onClick: stop }]
}

function clone({ object: { metadata, kind: of }, kind }: ActionProps, { t, navigate }: Hands): Action[] {
  const { name, namespace = '' } = metadata
  const list = (pathOf({ kind: of ?? kind.kind, metadata }, namespace) ?? '').split('/').slice(0, -2).join('/')
  return [{ key: 'clone', label: t(words.clone), onClick: () => navigate(`${list}/new/${kind.plural}?from=${encodeURIComponent(name)}`) }]
}

function debug({ object: job, kind }: ActionProps, { t, run, confirm }: Hands): Action[] {
  if (hasEnded(job) || !canDebug(job)) return []
  const { name } = job.metadata
  const on = !isDebugging(job)
  const work = async (): Promise<void> => {
    if (!(await replaced(kind, job, on))) throw new Error(t(words.debugStuck, { name }))
  }
  const ask = (): void =>
    confirm({
      title: t(on ? words.debugTitle : words.endDebugTitle, { name }),
      content: t(on ? words.debugHelp : words.endDebugHelp),
      okText: t(on ? words.debug : words.endDebug),
      onOk: () => run(work, t(words.debugging, { name })),
    })
  return [{ key: 'debug', label: t(on ? words.debug : words.endDebug), onClick: ask }]
}

export const ACTIONS: Record<string, ActionPart> = { 'job-pause': { menu: pause }, 'job-clone': { menu: clone }, 'job-debug': { menu: debug } }

const deleting: DeletingPart = (jobs, t) => {
  const [job] = jobs
  if (jobs.length !== 1 || !job) return { consequences: t(words.deleteMany) }
  const count = rolesOf(job).reduce((sum, role) => sum + role.replicas, 0)
  return { consequences: t(words.deleteOne, { count, tensorboard: hasBoardBeside(job) ? t(words.deleteBoardBeside) : wantsBoard(job) ? t(words.deleteTensorboard) : '' }) }
}

export const DELETING: Record<string, DeletingPart> = { job: deleting }

/** Pods keep the command they were made with, so the job is paused, and goes on when all of them are gone. */
async function replaced(kind: Kind, job: KubeObject, debugging: boolean): Promise<boolean> {
  const { name, namespace } = job.metadata
  if (isPaused(job)) {
    await patchObject(kind, namespace, name, debugPatch(job, debugging))
    return true
  }
  await patchObject(kind, namespace, name, bothPatch(job, debugging))
  for (let second = 0; second < STOP_S; second++) {
    const now = await getObject(kind, namespace, name)
    if (field(now, 'status.phase') === 'Paused') {
      await patchObject(kind, namespace, name, pausePatch(job, false))
      return true
    }
    await new Promise((resolve) => setTimeout(resolve, 1_000))
  }
  return false
}
