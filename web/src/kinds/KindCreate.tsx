/** The create page of a kind that describes itself: its form, begun with what the address says, or with a copy (?from=NAME). */
import { Alert } from 'antd'
import { useQuery } from '@tanstack/react-query'
import { lazy, useMemo } from 'react'
import { useNavigate, useParams, useSearchParams } from 'react-router-dom'
import { exampleOf, formOf } from '../forms/bundled'
import { CreatePage } from '../forms/CreatePage'
import { initialValue, read, write, type Value } from '../forms/value'
import { useNamespace } from '../frame/project'
import { Waiting } from '../frame/Waiting'
import { useText, useWords } from '../i18n'
import { getObject, listObjects, platformKind } from '../kube'
import { words as uiWords } from '../ui/words'
import { asNew } from '../ui/yaml/yamlText'
import { useSaid } from '../why/useSaid'
import { copyName } from './copyName'
import type { Description, KindPage } from './description'
import { formPartNamed } from './forms'
import { words } from './words'

const NotFound = lazy(() => import('../frame/NotFound'))

export default function KindCreate({ page }: { page: KindPage }) {
  const { plural } = useParams()
  const said = page.several ? page.kinds.find((each) => each.plural === plural) : page.kinds[0]
  return said ? <CreateOf key={said.plural} page={page} said={said} /> : <NotFound />
}

function useCopy(said: Description, namespace: string, from: string | null) {
  const kind = platformKind(said.kind)
  return useQuery({
    queryKey: ['clone', kind.plural, namespace, from],
    enabled: from !== null,
    staleTime: Infinity,
    queryFn: async ({ signal }): Promise<Value> => {
      const [object, others] = await Promise.all([getObject(kind, namespace, from!, signal), listObjects(kind, { namespace }, signal)])
      const copy = write(asNew({ ...object, apiVersion: kind.apiVersion, kind: kind.kind }) as unknown as Value, 'metadata.namespace', undefined)
      return write(copy, 'metadata.name', copyName(from!, new Set(others.map((each) => each.metadata.name))))
    },
  })
}

function CreateOf({ page, said }: { page: KindPage; said: Description }) {
  const t = useText()
  const ui = useWords(uiWords)
  const { error } = useSaid()
  const namespace = useNamespace()
  const navigate = useNavigate()
  const [params] = useSearchParams()
  const from = params.get('from')
  const home = said.home ?? namespace
  const source = useCopy(said, home, from)
  const parts = useMemo(() => (page.form ?? []).map(formPartNamed), [page])
  const form = useMemo(() => {
    const own = formOf(said.kind)
    return own && parts.reduce((now, part) => part.form?.(now, said, page) ?? now, own)
  }, [page, parts, said])
  const initial = useMemo(() => {
    if (!form || !page.address) return undefined
    const empty = initialValue(form, said.apiVersion, said.kind, exampleOf(said.kind))
    return Object.entries(page.address).reduce((value, [name, path]) => write(value, path, params.get(name) ?? ''), empty)
  }, [form, page, said, params])
  if (!form) return <NotFound />
  if (from !== null && source.isPending) return <Waiting for={ui('loading', { what: from })} />
  const begun = source.data ?? initial
  const finish = (value: Value): Value => {
    const finished = parts.reduce((now, part) => part.finish?.(now, said) ?? now, value)
    return Object.entries(page.always ?? {}).reduce((now, [path, fallback]) => (read(now, path) === undefined ? write(now, path, fallback) : now), finished)
  }
  const send = parts.find((part) => part.send)?.send
  const leadsTo = parts.find((part) => part.leadsTo)?.leadsTo
  const sections = parts.flatMap(({ Section }) => Section ?? [])
  const title = [t(page.create ?? words.create), page.several ? t(said.create?.label ?? said.name) : ''].filter(Boolean).join(' · ')
  return (
    <>
      {from !== null && source.data && <Alert type="info" showIcon closable style={{ marginBottom: 12 }} message={t(words.cloneOf, { name: from })} />}
      {from !== null && source.error && <Alert type="warning" showIcon style={{ marginBottom: 12 }} message={t(words.cloneGone, { name: from, message: error(source.error) })} />}
      <CreatePage
        key={from}
        kind={platformKind(said.kind)}
        namespace={home}
        form={form}
        title={title}
        list={{ label: t(page.title), to: `/build/${namespace}/${page.key}` }}
        overrides={Object.assign({}, ...parts.map((part) => part.overrides))}
        finish={finish}
        beside={(value) => parts.flatMap((part) => part.beside?.(value, said) ?? [])}
        {...(begun ? { initial: begun } : {})}
        {...(send ? { send: (object) => send(object, platformKind(said.kind)) } : {})}
        {...(leadsTo ? { onCreated: (object) => navigate(leadsTo(object)) } : {})}
      >
        {(value, onChange) => sections.map((Section, index) => <Section key={index} namespace={namespace} value={value} onChange={onChange} />)}
      </CreatePage>
    </>
  )
}
