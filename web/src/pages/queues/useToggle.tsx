import { App } from 'antd'
import { useCallback } from 'react'
import { useWords } from '../../i18n'
import { KINDS, messageOf, patchObject, type KubeObject } from '../../kube'
import { queueState } from './reading'
import { words } from './words'

/** Opens a closed queue and closes an open one. */
export function useToggle(): (queue: KubeObject) => Promise<void> {
  const w = useWords(words)
  const { message, notification } = App.useApp()
  return useCallback(
    async (queue) => {
      const closed = queueState(queue) === 'closed'
      try {
        await patchObject(KINDS.Queue, queue.metadata.namespace, queue.metadata.name, { spec: { closed: !closed } })
        void message.success(w(closed ? 'opened' : 'wasClosed', { name: queue.metadata.name }))
      } catch (error) {
        notification.error({ message: messageOf(error) })
      }
    },
    [w, message, notification],
  )
}
