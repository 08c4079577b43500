import { describe, expect, it } from 'vitest'
import { asNew, parseYaml, toYaml } from './yamlText'

describe('YAML', () => {
  it('holds several documents and says where each begins', () => {
    const parsed = parseYaml('apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n---\n# two\napiVersion: v1\nkind: Secret\nmetadata: {name: b}\n')
    expect(parsed.objects.map((o) => o.kind)).toEqual(['Pod', 'Secret'])
    expect(parsed.lines).toEqual([1, 6])
    expect(parsed.faults).toEqual([])
  })

  it('points at the line of an error', () => {
    const parsed = parseYaml('kind: Pod\nmetadata:\n  name: a\n bad: [1\n')
    expect(parsed.faults[0]?.line).toBeGreaterThanOrEqual(4)
  })

  it('refuses a key that stands there twice', () => {
    expect(parseYaml('kind: Pod\nkind: Job\n').faults[0]?.line).toBe(2)
  })

  it('opens lists', () => {
    expect(parseYaml('kind: List\nitems:\n- {kind: Pod}\n- {kind: Job}\n').objects.length).toBe(2)
  })

  it('reads nothing from nothing', () => {
    expect(parseYaml('\n# only a comment\n')).toEqual({ objects: [], lines: [], places: [], faults: [] })
  })

  it('hides managedFields and makes clean copies', () => {
    const object = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', uid: 'u', managedFields: [1] }, spec: {}, status: { phase: 'Running' } }
    expect(toYaml(object)).not.toContain('managedFields')
    expect(asNew(object)).toEqual({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' }, spec: {} })
  })

  it('knows the line of a field, in every document', () => {
    const text = 'kind: A\nmetadata:\n  name: a\n---\nkind: B\nspec:\n  list:\n    - x: 1\n    - x: 2\n      y: z\n'
    const { places } = parseYaml(text)
    expect(places[0]!('metadata.name')).toEqual({ line: 3, column: 3 })
    expect(places[1]!('spec.list.1.y')).toEqual({ line: 10, column: 7 })
    expect(places[1]!('spec.list.1.missing.deeper').line).toBe(9)
    expect(places[1]!('status').line).toBe(5)
    expect(parseYaml('kind: List\nitems:\n- kind: A\n- kind: B\n  spec: 1\n').places[1]!('spec').line).toBe(5)
  })
})
