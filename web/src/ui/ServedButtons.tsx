/** 打开 | 暂停, or 恢复: what a program that is served in a browser can be told. */
import { App, Button } from 'antd'
import { useState } from 'react'
import { useWords } from '../i18n'
import type { ActionSpec } from '../kinds/description'
import { field, isTrue, patchObject, type Kind, type KubeObject } from '../kube'
import { useSaid } from '../why/useSaid'
import { useOpenApp } from './useOpenApp'
import { words } from './words'

const look = (small: boolean) => (small ? ({ type: 'link', size: 'small', style: { paddingInline: 4 } } as const) : ({} as const))

function useBusy(): [boolean, (work: () => Promise<unknown>) => Promise<void>] {
  const w = useWords(words)
  const said = useSaid()
  const { notification } = App.useApp()
  const [busy, setBusy] = useState(false)
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true)
    try {
      await work()
    } catch (error) {
      notification.error({ message: w('actionFailed', { message: said.error(error) }) })
    } finally {
      setBusy(false)
    }
  }
  return [busy, run]
}

/** Not there while it is suspended, not to be pressed until it answers. */
export function OpenButton({ object, kind, spec, small = false }: { object: KubeObject; kind: Kind; spec: ActionSpec; small?: boolean }) {
  const w = useWords(words)
  const open = useOpenApp()
  const [, run] = useBusy()
  const { name, namespace = '' } = object.metadata
  if (Object.entries(spec.unless ?? {}).some(([path, value]) => field(object, path) === value)) return null
  return (
    <Button {...look(small)} {...(small ? {} : { type: 'primary' as const })} disabled={!isTrue(object, 'Ready')} onClick={() => void run(() => open(namespace, kind.kind.toLowerCase(), name))} aria-label={`${w('open')} ${name}`}>
      {w('open')}
    </Button>
  )
}

/** One button for both ways, so that it keeps focus while its word changes. */
export function SuspendButton({ object, kind, suspended, patch, small = false }: { object: KubeObject; kind: Kind; suspended: boolean; patch: (on: boolean) => object; small?: boolean }) {
  const w = useWords(words)
  const [busy, run] = useBusy()
  const { name, namespace = '' } = object.metadata
  const toggle = w(suspended ? 'resume' : 'suspend')
  return (
    <Button {...look(small)} loading={busy} onClick={() => void run(() => patchObject(kind, namespace, name, patch(!suspended)))} aria-label={`${toggle} ${name}`}>
      {toggle}
    </Button>
  )
}
