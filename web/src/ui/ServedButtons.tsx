/** 打开 | 暂停, or 恢复: what a notebook and a TensorBoard can be told. */
import { App, Button } from 'antd'
import { useState } from 'react'
import { useWords } from '../i18n'
import { field, isTrue, messageOf, patchObject, type AppKind, type Kind, type KubeObject } from '../kube'
import { useOpenApp } from './useOpenApp'
import { words } from './words'

/** The name of the pod that serves it now. */
export const servingPod = (object: KubeObject): string | undefined => field(object, 'status.pod.reference.name') || undefined

const isSuspended = (object: KubeObject): boolean => field(object, 'spec.suspend') === true || field(object, 'spec.runMode') === 'paused'

export interface ServedButtonsProps {
  kind: Kind
  app: AppKind
  object: KubeObject
  /** in a table: links; on a page: buttons */
  small?: boolean
}

export function ServedButtons({ kind, app, object, small = false }: ServedButtonsProps) {
  const w = useWords(words)
  const open = useOpenApp()
  const { notification } = App.useApp()
  const [busy, setBusy] = useState(false)
  const { name, namespace = '' } = object.metadata
  const suspended = isSuspended(object)
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    try {
      await work()
    } catch (error) {
      notification.error({ message: w('actionFailed', { message: messageOf(error) }) })
    } finally {
      setBusy(false)
    }
  }
  // `runMode` is the older spelling; a merge patch with null takes it away.
  const suspend = (suspended: boolean): Promise<unknown> =>
    run(() => patchObject(kind, namespace, name, { spec: { suspend: suspended, ...(field(object, 'spec.runMode') ? { runMode: null } : {}) } }))
  const look = small ? ({ type: 'link', size: 'small', style: { paddingInline: 4 } } as const) : ({} as const)
  // One button for both ways, so that it keeps focus while its word changes.
  const toggle = w(suspended ? 'resume' : 'suspend')
  return (
    <>
      {!suspended && (
        <Button {...look} {...(small ? {} : { type: 'primary' as const })} disabled={!isTrue(object, 'Ready')} onClick={() => void run(() => open(namespace, app, name))} aria-label={`${w('open')} ${name}`}>
          {w('open')}
        </Button>
      )}
      <Button {...look} loading={busy} onClick={() => void suspend(!suspended)} aria-label={`${toggle} ${name}`}>
        {toggle}
      </Button>
    </>
  )
}
