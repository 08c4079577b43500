/** One object of a kind that describes its page: why it waits, what it is, its pods, what they write, its YAML. */
import { Button, Space } from 'antd'
import { lazy } from 'react'
import { useNavigate, useParams } from 'react-router-dom'
import { useNamespace } from '../frame/project'
import { useText } from '../i18n'
import { platformKind, type KubeObject } from '../kube'
import { Conditions } from '../ui/object/Conditions'
import { Events } from '../ui/object/Events'
import { ObjectPage } from '../ui/object/ObjectPage'
import { Summary } from '../ui/object/Summary'
import { WhyBox } from '../ui/WhyBox'
import { useKindActions } from './actions'
import type { Description, KindPage, ValueSpec } from './description'
import type { View } from './features'
import { rendererOf } from './renderers'
import { sectionNamed, tabNamed } from './tabs'
import { useView } from './view'

const NotFound = lazy(() => import('../frame/NotFound'))

export default function KindDetail({ page }: { page: KindPage }) {
  const { plural, name = '' } = useParams()
  const said = page.several ? page.kinds.find((each) => each.plural === plural) : page.kinds[0]
  return said ? <DetailOf key={`${said.plural}/${name}`} page={page} said={said} name={name} /> : <NotFound />
}

function DetailOf({ page, said, name }: { page: KindPage; said: Description; name: string }) {
  const t = useText()
  const namespace = useNamespace()
  const navigate = useNavigate()
  const view = useView(said, said.home ?? namespace, name)
  const { menu, buttons, deleting } = useKindActions(page)
  const list = { label: t(page.title), to: `/build/${namespace}/${page.key}` }
  const tabs = (object: KubeObject) => [
    ...(page.summary === false ? [] : [{ key: 'summary', label: t(said.name), children: <First object={object} view={view} page={page} namespace={namespace} /> }]),
    ...(page.tabs ?? ['pods', 'logs']).map((key) => {
      const { label, Show } = tabNamed(key)
      return { key: keyOf(key), label: label ? t(label) : said.kind, children: <Show object={object} view={view} page={page} /> }
    }),
  ]
  return (
    <ObjectPage
      kind={platformKind(said.kind)}
      name={name}
      observed={view.observed}
      list={list}
      deleting={(object) => deleting([object])}
      onDeleted={() => navigate(list.to)}
      actions={(object) => {
        const inSight = buttons?.(object, false)
        const others = menu(object)
        return (
          <>
            {inSight}
            {others.length > 0 && (
              <Space wrap>
                {others.map((action) => (
                  <Button key={action.key} onClick={action.onClick}>
                    {action.label}
                  </Button>
                ))}
              </Space>
            )}
          </>
        )
      }}
      above={(object) => (page.why === false ? null : <WhyBox object={object} pods={view.pods} events={view.events} claims={view.claims} />)}
      tabs={tabs}
    />
  )
}

/** Part of the address: job-logs is logs there. */
const keyOf = (name: string): string => name.replace(/^job-/, '')

function First({ object, view, page, namespace }: { object: KubeObject; view: View; page: KindPage; namespace: string }) {
  const t = useText()
  const entries = page.summary || []
  const value = (spec: ValueSpec) => {
    const { Show, title } = rendererOf(spec)
    return { key: spec.key, label: t(spec.title ?? title) || spec.key, value: <Show object={object} spec={spec} namespace={namespace} pods={view.pods} />, ...(spec.wide ? { wide: true } : {}) }
  }
  return (
    <>
      <Summary object={object} state={!entries.some((spec) => spec.as === 'state')} entries={entries.map(value)} />
      {(page.sections ?? []).map((name) => {
        const Section = sectionNamed(name)
        return <Section key={name} object={object} />
      })}
      <Conditions object={object} />
      <Events namespace={object.metadata.namespace} objects={[object, ...view.pods]} />
    </>
  )
}
