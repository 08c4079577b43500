/** Ctrl-K: pages and objects of the project by name. */
import { Input, Tag, type InputRef } from 'antd'
import { useEffect, useMemo, useRef, useState } from 'react'
import { useNavigate } from 'react-router-dom'
import { useText, useWords } from '../i18n'
import { KINDS, kindNamed, useLists, type KubeObject } from '../kube'
import { Dialog } from '../ui/popup/Dialog'
import { pathOf } from '../ui/paths'
import { focusContent } from './content'
import { ENTRIES, entriesOf, type MenuEntry } from './pages'
import { words } from './words'

const kindsOf = (entry: MenuEntry) => (entry.search === false ? [] : entry.kinds)
const OWN = ENTRIES.filter((entry) => entry.section !== 'cluster').flatMap(kindsOf)
const CLUSTER = [...entriesOf('cluster').flatMap(kindsOf), KINDS.Namespace]
const OVERVIEW = { key: 'overview', title: words.overview }
const LISTS = (['storage', 'building', 'auxiliary', 'cluster'] as const).flatMap(entriesOf)
const SHOWN = 30

interface Hit {
  key: string
  label: string
  tag: string
  to: string
}

export default function Search({ namespace, onClose }: { namespace: string; onClose: () => void }) {
  const w = useWords(words)
  const t = useText()
  const navigate = useNavigate()
  const own = useLists(OWN, { namespace })
  const cluster = useLists(CLUSTER)
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const input = useRef<InputRef>(null)
  const hits = useMemo<Hit[]>(() => {
    const wanted = text.trim().toLowerCase()
    const pages = [OVERVIEW, ...LISTS]
      .filter(({ key, title }) => !wanted || t(title).toLowerCase().includes(wanted) || key.includes(wanted))
      .map(({ key, title }) => ({ key: `page/${key}`, label: t(title), tag: w('page'), to: `/build/${namespace}/${key}` }))
    if (!wanted) return pages
    const found: Hit[] = []
    const look = (object: KubeObject): void => {
      const to = pathOf(object, namespace)
      if (found.length >= SHOWN || !to || !object.metadata.name.toLowerCase().includes(wanted)) return
      const known = kindNamed(object.kind, object.apiVersion)
      found.push({ key: `${object.kind}/${object.metadata.name}`, label: object.metadata.name, tag: known ? t(known.words) : (object.kind ?? ''), to })
    }
    own.items.forEach(look)
    cluster.items.forEach(look)
    found.sort((a, b) => Number(b.label.startsWith(wanted)) - Number(a.label.startsWith(wanted)))
    return [...pages, ...found]
  }, [text, own.items, cluster.items, namespace, w, t])
  useEffect(() => setAt(0), [text])
  useEffect(() => input.current?.focus(), [])
  const go = (hit: Hit | undefined): void => {
    if (!hit) return
    onClose()
    navigate(hit.to)
    focusContent()
  }
  return (
    <Dialog footer={null} closable={false} onCancel={onClose} width={560} style={{ top: 80 }} afterOpenChange={() => input.current?.focus()} title={w('search')} styles={{ header: { display: 'none' } }}>
      <Input
        ref={input}
        size="large"
        role="combobox"
        aria-label={w('search')}
        aria-expanded
        aria-controls="search-results"
        aria-activedescendant={hits[at] ? `hit-${at}` : undefined}
        placeholder={w('searchPlaceholder')}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'ArrowDown') setAt(Math.min(at + 1, hits.length - 1))
          else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0))
          else if (event.key === 'Enter') go(hits[at])
          else return
          event.preventDefault()
        }}
      />
      <div role="listbox" id="search-results" aria-label={w('search')} style={{ maxHeight: 420, overflow: 'auto', marginTop: 8 }}>
        {hits.map((hit, index) => (
          <div
            key={hit.key}
            id={`hit-${index}`}
            role="option"
            aria-selected={index === at}
            className="search-result"
            onMouseEnter={() => setAt(index)}
            onClick={() => go(hit)}
          >
            <span className="grow">{hit.label}</span>
            <Tag>{hit.tag}</Tag>
          </div>
        ))}
        {hits.length === 0 && <p className="quiet">{w(own.partial ? 'searching' : 'searchNothing')}</p>}
      </div>
    </Dialog>
  )
}
