/** Deleting, with a plain statement of what goes with it. */
import { App } from 'antd'
import { useCallback } from 'react'
import { useText, useWords } from '../i18n'
import { deleteObject, findKind, type KubeObject } from '../kube'
import { useSaid } from '../why/useSaid'
import { words } from './words'

export interface Deleting {
  /** What goes with them, or why it is refused; default: nothing else. */
  consequences?: string | undefined
  /** Set: it is not offered, only explained. */
  refused?: boolean
  onDeleted?: () => void
}

export function useDelete(): (objects: readonly KubeObject[], deleting?: Deleting) => void {
  const { modal, message, notification } = App.useApp()
  const w = useWords(words)
  const said = useSaid()
  const t = useText()
  return useCallback(
    (objects, { consequences, refused, onDeleted } = {}) => {
      const [first] = objects
      if (!first) return
      const one = objects.length === 1
      void findKind(first.apiVersion ?? '', first.kind ?? '').then((kind) => {
        const title = one ? w('deleteTitle', { kind: kind ? t(kind.words) : (first.kind ?? ''), name: first.metadata.name }) : w('deleteMany', { count: objects.length })
        const content = (
          <div>
            {!one && <p className="break">{objects.map((each) => each.metadata.name).slice(0, 20).join(', ')}{objects.length > 20 ? ' …' : ''}</p>}
            <p className="break">{consequences ?? w('deleteNothingElse')}</p>
          </div>
        )
        if (refused) {
          modal.warning({ title, content, okText: w('close') })
          return
        }
        modal.confirm({
          title,
          content,
          okText: w('delete'),
          okButtonProps: { danger: true },
          cancelText: w('cancel'),
          autoFocusButton: 'cancel',
          onOk: async () => {
            let done = 0
            // Eight at a time: quick for hundreds, gentle to the server.
            const rest = [...objects]
            const work = async (): Promise<void> => {
              for (let object = rest.pop(); object; object = rest.pop()) {
                try {
                  const kindOf = await findKind(object.apiVersion ?? '', object.kind ?? '')
                  if (kindOf) await deleteObject(kindOf, object.metadata.namespace, object.metadata.name, object.metadata.uid)
                  done++
                } catch (error) {
                  notification.error({ message: w('deleteFailed', { name: object.metadata.name, message: said.error(error) }) })
                }
              }
            }
            await Promise.all(Array.from({ length: 8 }, work))
            if (done > 0) {
              void message.success(one ? w('deleted', { name: first.metadata.name }) : w('deletedMany', { count: done }))
              onDeleted?.()
            }
          },
        })
      })
    },
    [modal, message, notification, w, t, said],
  )
}
