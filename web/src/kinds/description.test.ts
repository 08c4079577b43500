import { describe as group, expect, it } from 'vitest'
import { isOn, togglePatch } from './toggling'
import { exampleOf, formOf } from '../forms/bundled'
import { LANGUAGES } from '../i18n/words'
import { pathOf } from '../ui/paths'
import { stateOf } from '../ui/state'
import { describe, DESCRIPTIONS, KIND_PAGES, pageOf } from './description'

const texts = (value: unknown, path = ''): [string, Record<string, unknown>][] => {
  if (typeof value !== 'object' || value === null) return []
  if ('zh' in value || 'en' in value) return [[path, value as Record<string, unknown>]]
  return Object.entries(value).flatMap(([key, inner]) => texts(inner, `${path}.${key}`))
}

group.each(DESCRIPTIONS.map((each) => [each.kind, each] as const))('%s', (name, said) => {
  it('speaks both languages', () => {
    for (const [path, text] of texts(said)) for (const language of LANGUAGES) expect(text[language], `${path}.${language}`).toBeTruthy()
  })

  it('says what its states look like', () => expect(said.states ?? said.cases ?? (said.kind === 'QuotaProfile' ? {} : undefined)).toBeDefined())

  it('has a form wherever its page creates one', () => {
    const page = pageOf(name)
    if (page && (!page.several || said.create)) expect(formOf(name) && exampleOf(name)).toBeTruthy()
  })
})

group('pages', () => {
  it('of one kind and of several', () => {
    expect(pageOf('Notebook')).toMatchObject({ key: 'notebooks', several: false })
    expect(pageOf('TFJob')).toMatchObject({ key: 'jobs', several: true })
    expect(pageOf('TensorFlowJob')?.key).toBe('jobs')
    expect(pageOf('PodGroup')).toBeUndefined()
    expect(pageOf('QuotaProfile')).toBeUndefined()
  })

  it('have addresses of their own', () => {
    const keys = KIND_PAGES.map((page) => page.key)
    expect(new Set(keys).size).toBe(keys.length)
  })

  it('create jobs in the order of the documents', () => {
    const jobs = KIND_PAGES.find((page) => page.key === 'jobs')!
    expect(jobs.kinds.filter((each) => each.create).map((each) => each.kind)).toEqual(['PyTorchTrainingJob', 'TensorFlowTrainingJob', 'PyTorchJob', 'TFJob'])
  })

  it('are found by the object', () => {
    const named = (kind: string, namespace?: string) => pathOf({ kind, metadata: { name: 'x', ...(namespace ? { namespace } : {}) } }, 'here')
    expect(named('Notebook', 'there')).toBe('/build/there/notebooks/x')
    expect(named('TFJob', 'there')).toBe('/build/there/jobs/tfjobs/x')
    expect(named('Queue', 't9k-system')).toBe('/build/here/queues/x')
    expect(named('Project', 'team')).toBe('/build/team/overview')
    expect(named('Namespace')).toBe('/build/x/overview')
    expect(named('PodGroup', 'there')).toBeUndefined()
  })
})

group('states', () => {
  const job = (kind: string, status: object) => stateOf({ kind, metadata: { name: 'x' }, status })
  const condition = (type: string, status = 'True') => ({ type, status, reason: `${type}Reason`, message: `${type} message` })

  it('of a phase, in the words of the documents', () => {
    expect(job('PyTorchTrainingJob', { phase: 'Succeeded' })).toMatchObject({ word: 'Done', tone: 'good', reason: 'Succeeded' })
    expect(job('TensorFlowJob', { phase: 'Failed', conditions: [condition('Failed')] })).toMatchObject({ word: 'Error', tone: 'bad', reason: 'Failed', message: 'Failed message' })
    expect(job('Notebook', { phase: 'Suspended' })).toMatchObject({ word: 'Suspended', tone: 'quiet' })
  })

  it('of conditions, the strongest first', () => {
    expect(job('PyTorchJob', { conditions: [condition('Created'), condition('Running')] })).toMatchObject({ word: 'Running', tone: 'busy', reason: undefined })
    expect(job('TFJob', { conditions: [condition('Running'), condition('Failed')] })).toMatchObject({ word: 'Error', tone: 'bad', reason: 'Failed', message: 'Failed message' })
    expect(job('TFJob', { conditions: [condition('Created'), condition('Restarting')] })).toMatchObject({ word: 'Restarting', reason: 'RestartingReason', message: 'Restarting message' })
    expect(job('PyTorchJob', {})).toMatchObject({ word: 'Pending', tone: 'waiting' })
  })

  it('of cases, of which the first that holds counts', () => {
    const queue = (namespace: string, spec: object) => stateOf({ kind: 'Queue', metadata: { name: 'q', namespace }, spec })
    expect(queue('t9k-system', {})).toMatchObject({ word: 'Open', tone: 'good' })
    expect(queue('t9k-system', { closed: true })).toMatchObject({ word: 'Closed', tone: 'quiet', text: { zh: '关闭' } })
    expect(queue('demo', { closed: true })).toMatchObject({ word: 'Not used', tone: 'bad', because: { en: 'Queues must stand in t9k-system' } })
    expect(job('Project', { conditions: [condition('Ready', 'False')] })).toMatchObject({ word: 'Pending', tone: 'waiting', reason: 'ReadyReason' })
  })
})

group('what is turned on and off', () => {
  const spec = pageOf('Notebook')!.actions!.find((each) => each.do === 'suspend')!
  const notebook = (spec: object) => ({ kind: 'Notebook', metadata: { name: 'n' }, spec })
  it('is on in either spelling, and written in the newer one', () => {
    expect([isOn(notebook({}), spec), isOn(notebook({ suspend: true }), spec), isOn(notebook({ runMode: 'paused' }), spec)]).toEqual([false, true, true])
    expect(togglePatch(notebook({}), spec, true)).toEqual({ spec: { suspend: true } })
    expect(togglePatch(notebook({ runMode: 'paused' }), spec, false)).toEqual({ spec: { suspend: false, runMode: null } })
  })
})

it('a kind that a folder brings along is shown as its own is', () => {
  expect(describe('TensorFlowJob')).toMatchObject({ folder: 'tensorflowtrainingjob', apiVersion: 'batch.tensorstack.dev/v1beta1', plural: 'tensorflowjobs' })
  expect(describe('TensorFlowJob')).not.toHaveProperty('create')
})
