/** What a console.yaml can ask for by name. A feature is a folder in src/features with one or more of these files, each of
 * which exports its parts by name: renderers.tsx (values of lists and summaries), actions.tsx, tabs.tsx, forms.tsx. */
import type { ComponentType, ReactNode } from 'react'
import type { NavigateFunction } from 'react-router-dom'
import type { Overrides } from '../forms/ObjectForm'
import type { FormSpec } from '../forms/spec'
import type { Value } from '../forms/value'
import type { Parameters, Text } from '../i18n/words'
import type { Kind, KubeObject, Observed } from '../kube'
import type { Action } from '../ui/table/ResourceTable'
import type { Deleting } from '../ui/useDelete'
import type { ActionSpec, Description, KindPage, ValueSpec } from './description'

export interface RendererProps {
  object: KubeObject
  spec: ValueSpec
  /** the project we are in */
  namespace: string
  /** known on the object's own page only */
  pods?: readonly KubeObject[]
}

/** How a value is shown, sorted and filtered. */
export interface Renderer {
  title?: Text
  Show: ComponentType<RendererProps>
  sort?: (object: KubeObject, spec: ValueSpec) => string | number
  filter?: (object: KubeObject, spec: ValueSpec) => string | readonly string[] | undefined
  /** how a value of `filter` reads */
  label?: (value: string, spec: ValueSpec, page: KindPage) => Text | undefined
}

/** What actions are given to work with. */
export interface Hands {
  t: (text: Text | undefined, parameters?: Parameters) => string
  navigate: NavigateFunction
  /** does it, and says that it is done or why not */
  run: (work: () => Promise<unknown>, done?: string) => Promise<void>
  confirm: (question: { title: string; content: string; okText: string; onOk: () => Promise<void> }) => void
}

export interface ActionProps {
  object: KubeObject
  spec: ActionSpec
  kind: Kind
  /** in a table: links; on a page: buttons */
  small?: boolean
}

export interface ActionPart {
  Button?: ComponentType<ActionProps>
  menu?: (props: ActionProps, hands: Hands) => Action[]
}

export type DeletingPart = (objects: readonly KubeObject[], t: Hands['t']) => Deleting

/** Everything that an object's page shows, live. */
export interface View {
  observed: Observed
  pods: readonly KubeObject[]
  events: readonly KubeObject[]
  claims: readonly KubeObject[]
}

export interface TabProps {
  object: KubeObject
  view: View
  page: KindPage
}

export interface Tab {
  /** default: the kind's name */
  label?: Text
  Show: ComponentType<TabProps>
}

export interface FormPart {
  form?: (form: FormSpec, description: Description, page: KindPage) => FormSpec
  overrides?: Overrides
  finish?: (value: Value, description: Description) => Value
  beside?: (value: Value, description: Description) => KubeObject[]
  Section?: ComponentType<{ namespace: string; value: Value; onChange: (value: Value) => void }>
  send?: (object: KubeObject, kind: Kind) => Promise<KubeObject>
  /** where to go when it is made */
  leadsTo?: (object: KubeObject) => string
}

export type SectionPart = ComponentType<{ object: KubeObject }>
export type ExpandedPart = (object: KubeObject) => ReactNode

/** Parts of all files in one table; that a console.yaml names one which nobody has is a mistake of who wrote it. */
export function table<T>(what: string, ...parts: readonly (Readonly<Record<string, T>> | undefined)[]): (name: string) => T {
  const all = Object.assign({}, ...parts) as Record<string, T>
  return (name) => {
    const found = all[name]
    if (!found) throw new Error(`no ${what} is called ${name}; there are ${Object.keys(all).sort().join(', ')}`)
    return found
  }
}
