/** What can be done with an object of any kind; what only some kinds can is in src/features. */
import { App, Button } from 'antd'
import { useMemo } from 'react'
import { Link, useNavigate } from 'react-router-dom'
import { useText } from '../i18n'
import { kindNamed, patchObject, type Kind, type KubeObject } from '../kube'
import { pathOf } from '../ui/paths'
import type { Action } from '../ui/table/ResourceTable'
import { OpenButton, SuspendButton } from '../ui/ServedButtons'
import type { Deleting } from '../ui/useDelete'
import { useSaid } from '../why/useSaid'
import type { KindPage } from './description'
import { table, type ActionPart, type ActionProps, type DeletingPart, type Hands } from './features'
import { isOn, togglePatch } from './toggling'
import { words } from './words'

function toggled({ object, spec, kind }: ActionProps, { t, run }: Hands): Action[] {
  const on = isOn(object, spec)
  const { name, namespace } = object.metadata
  // One key for both ways: the button keeps focus while its word changes.
  const work = () => run(() => patchObject(kind, namespace, name, togglePatch(object, spec, !on)), t(on ? spec.doneOff : spec.doneOn, { name }))
  return [{ key: spec.key ?? 'toggle', label: t(on ? spec.off : spec.on), onClick: () => void work() }]
}

function Enter({ object, small }: ActionProps) {
  const t = useText()
  const to = pathOf(object, object.metadata.namespace ?? '') ?? ''
  return small ? <Link to={to}>{t(words.enter)}</Link> : <Button href={to}>{t(words.enter)}</Button>
}

const ACTIONS: Readonly<Record<string, ActionPart>> = {
  open: { Button: OpenButton },
  suspend: { Button: ({ spec, ...props }) => <SuspendButton {...props} suspended={isOn(props.object, spec)} patch={(on) => togglePatch(props.object, spec, on)} /> },
  toggle: { menu: toggled },
  enter: { Button: Enter },
}

const files = import.meta.glob<{ ACTIONS?: Record<string, ActionPart>; DELETING?: Record<string, DeletingPart> }>('../features/*/actions.tsx', { eager: true })
export const actionNamed = table<ActionPart>('action', ACTIONS, ...Object.values(files).map((file) => file.ACTIONS))
export const deletingNamed = table<DeletingPart>('deletion', ...Object.values(files).map((file) => file.DELETING))

function useHands(): Hands {
  const t = useText()
  const said = useSaid()
  const navigate = useNavigate()
  const { modal, message, notification } = App.useApp()
  return useMemo(
    () => ({
      t,
      navigate,
      run: async (work, done) => {
        try {
          await work()
          if (done) void message.success(done)
        } catch (error) {
          notification.error({ message: t(words.failed, { message: said.error(error) }) })
        }
      },
      confirm: (question) => void modal.confirm(question),
    }),
    [t, said, navigate, modal, message, notification],
  )
}

export interface KindActions {
  /** of the ⋮ menu; on the object's page they are buttons */
  menu: (object: KubeObject) => Action[]
  /** in sight; undefined where the kind has none */
  buttons: ((object: KubeObject, small: boolean) => React.ReactNode) | undefined
  deleting: (objects: readonly KubeObject[]) => Deleting
}

const isOwned = (object: KubeObject): boolean => object.metadata.ownerReferences?.some((each) => each.controller) ?? false

export function useKindActions(page: KindPage): KindActions {
  const hands = useHands()
  return useMemo(() => {
    const specs = page.actions ?? []
    const inMenu = specs.filter((spec) => !spec.button)
    const inSight = specs.filter((spec) => spec.button)
    const kindOf = (object: KubeObject): Kind | undefined => kindNamed(object.kind, object.apiVersion)
    return {
      menu: (object) => {
        const kind = kindOf(object)
        return kind ? inMenu.flatMap((spec) => actionNamed(spec.do).menu?.({ object, spec, kind }, hands) ?? []) : []
      },
      buttons:
        inSight.length === 0
          ? undefined
          : (object, small) => {
              const kind = kindOf(object)
              return kind && inSight.map((spec) => {
                const { Button: Shown } = actionNamed(spec.do)
                return Shown && <Shown key={spec.do} object={object} spec={spec} kind={kind} small={small} />
              })
            },
      deleting: (objects) => {
        if (page.deleting) return deletingNamed(page.deleting)(objects, hands.t)
        if (!page.deletes) return {}
        const back = page.deletesOwned && objects.some(isOwned) ? ` ${hands.t(page.deletesOwned)}` : ''
        return { consequences: `${hands.t(page.deletes)}${back}` }
      },
    }
  }, [page, hands])
}
