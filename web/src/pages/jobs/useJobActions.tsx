/** Pause, resume, debug mode, clone, delete: the same in the list and on the job's page. */
import { App } from 'antd'
import { useCallback, useMemo } from 'react'
import { useNavigate } from 'react-router-dom'
import { useWords } from '../../i18n'
import { field, getObject, kindNamed, messageOf, patchObject, type Kind, type KubeObject } from '../../kube'
import type { Action } from '../../ui/ResourceTable'
import type { Deleting } from '../../ui/useDelete'
import { debugPatch, hasEnded, isDebugging, isKubeflow, isPaused, pausePatch, rolesOf } from './reading'
import { words } from './words'

const STOP_S = 60

export function useJobActions(): { actions: (job: KubeObject) => Action[]; deleting: (jobs: readonly KubeObject[]) => Deleting } {
  const w = useWords(words)
  const navigate = useNavigate()
  const { modal, message, notification } = App.useApp()

  const deleting = useCallback(
    (jobs: readonly KubeObject[]): Deleting => {
      const [job] = jobs
      if (jobs.length !== 1 || !job) return { consequences: w('deleteMany') }
      const count = rolesOf(job).reduce((sum, role) => sum + role.replicas, 0)
      return { consequences: w('deleteOne', { count, tensorboard: isKubeflow(job) ? w('deleteBoardBeside') : field(job, 'spec.tensorboardSpec') ? w('deleteTensorboard') : '' }) }
    },
    [w],
  )

  const actions = useCallback(
    (job: KubeObject): Action[] => {
      const kind = kindNamed(job.kind, job.apiVersion)
      if (!kind) return []
      const { name, namespace } = job.metadata
      const run = async (work: () => Promise<unknown>, done: string): Promise<void> => {
        try {
          await work()
          void message.success(done)
        } catch (error) {
          notification.error({ message: w('failedAction', { message: messageOf(error) }) })
        }
      }
      const patch = (change: object): Promise<unknown> => patchObject(kind, namespace, name, change)
      const pause = (): void =>
        void modal.confirm({
          title: w('pauseTitle', { name }),
          content: w('pauseHelp'),
          okText: w('pause'),
          onOk: () => run(() => patch(pausePatch(job, true)), w('paused', { name })),
        })
      const debug = (on: boolean): void =>
        void modal.confirm({
          title: w(on ? 'debugTitle' : 'endDebugTitle', { name }),
          content: w(on ? 'debugHelp' : 'endDebugHelp'),
          okText: w(on ? 'debug' : 'endDebug'),
          onOk: () =>
            run(async () => {
              if (!(await replaced(kind, job, on))) throw new Error(w('debugStuck', { name }))
            }, w('debugging', { name })),
        })
      const ended = hasEnded(job)
      return [
        // One key for both ways: the button keeps focus while its word changes.
        ...(ended
          ? []
          : isPaused(job)
            ? [{ key: 'pause', label: w('resume'), onClick: () => void run(() => patch(pausePatch(job, false)), w('resumed', { name })) }]
            : [{ key: 'pause', label: w('pause'), onClick: pause }]),
        { key: 'clone', label: w('clone'), onClick: () => navigate(`/build/${namespace}/jobs/new/${kind.plural}?from=${encodeURIComponent(name)}`) },
        ...(ended || isKubeflow(job) ? [] : [isDebugging(job) ? { key: 'debug', label: w('endDebug'), onClick: () => debug(false) } : { key: 'debug', label: w('debug'), onClick: () => debug(true) }]),
      ]
    },
    [w, navigate, modal, message, notification],
  )
  return useMemo(() => ({ actions, deleting }), [actions, deleting])
}

/** Pods keep the command they were made with, so the job is paused, and goes on when all of them are gone. */
async function replaced(kind: Kind, job: KubeObject, debugging: boolean): Promise<boolean> {
  const { name, namespace } = job.metadata
  if (isPaused(job)) {
    await patchObject(kind, namespace, name, debugPatch(debugging))
    return true
  }
  await patchObject(kind, namespace, name, { spec: { runMode: { ...field(debugPatch(debugging), 'spec.runMode'), pause: { enabled: true } } } })
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
