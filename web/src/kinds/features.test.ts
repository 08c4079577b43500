import { expect, it } from 'vitest'
import { actionNamed, deletingNamed } from './actions'
import { KIND_PAGES } from './description'
import { expandedNamed } from './expanded'
import { formPartNamed } from './forms'
import { rendererOf } from './renderers'
import { sectionNamed, tabNamed } from './tabs'

it.each(KIND_PAGES.map((page) => [page.key, page] as const))('the page %s asks only for parts that there are', (_, page) => {
  for (const spec of [...(page.leading ?? []), ...(page.columns ?? []), ...(page.filters ?? []), ...(page.summary || [])]) expect(rendererOf(spec), spec.key).toBeDefined()
  for (const spec of page.columns ?? []) if (spec.filter) expect(rendererOf(spec).filter, `${spec.key} cannot be filtered`).toBeDefined()
  for (const spec of page.filters ?? []) expect(rendererOf(spec).filter, `${spec.key} cannot be filtered`).toBeDefined()
  for (const spec of page.actions ?? []) expect(spec.button ? actionNamed(spec.do).Button : actionNamed(spec.do).menu, spec.do).toBeDefined()
  page.tabs?.forEach(tabNamed)
  page.sections?.forEach(sectionNamed)
  page.form?.forEach(formPartNamed)
  if (page.expanded) expandedNamed(page.expanded)
  if (page.deleting) deletingNamed(page.deleting)
})

it('says what there is where there is no such part', () => expect(() => tabNamed('no-such')).toThrow('no tab is called no-such; there are job,'))
