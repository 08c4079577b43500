import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import kubernetesText from '../../../src/danlu/diagnose/kubernetes.yaml?raw'
import chinese from '../../../src/danlu/diagnose/tables/chinese.json'
import sentencesText from '../../../tests/diagnose/sentences.yaml?raw'
import { sayMessage, sayReason, tableOf } from './said'
import { contract, recognise, stored, type Cause } from './table'

const table = tableOf(chinese)
const HAN = /\p{Script=Han}/u

// The same samples as tests/diagnose/test_tables.py: both sides find the same in them.
const { signs } = parse(kubernetesText) as { signs: { code: string; samples: string[]; found: Record<string, string> }[] }
const samples = (parse(sentencesText) as { chinese: Record<string, string> }).chinese

describe('what components of Kubernetes say', () => {
  it.each(signs)('is recognised: $code', ({ code, samples, found }) => {
    for (const sample of samples) expect(recognise(sample)?.code, sample).toBe(code)
    expect(recognise(samples[0]!)?.params).toEqual(found)
  })

  it.each(Object.entries(samples))('%s', (message, said) => expect(sayMessage(message, table)).toBe(said))

  it('is left alone where it is not known', () => {
    expect(recognise('quux has frobbed')).toBeUndefined()
    expect(sayMessage('quux has frobbed', table)).toBeUndefined()
    expect(sayReason('Frobbed', table)).toBeUndefined()
  })

  it('is read only so far as no pattern takes long', () => {
    const known = 'namespaces "demo" is gone; persistentvolumeclaim "mnist" not found'
    const value = '"'.padEnd(contract.longest, 'w.')
    expect(recognise(`${value.slice(known.length)} ${known.slice(1)}`)?.code).toBe('DL-CLAIM-MISSING')
    expect(recognise(`${value} ${known}`)).toBeUndefined()
    expect(sayMessage(`Error: ${'x'.repeat(contract.longest)}`, table)).toBeUndefined()
    expect(sayMessage('Error: '.repeat(20), table)).toBe(`${'错误：'.repeat(17)}${'Error: '.repeat(3)}`.trimEnd())
  })

  it('has reasons that begin with the kind', () => expect(sayReason('TFJobRestarting', table)).toBe('正在重启'))
})

// What the kinds' controllers say in every situation that is kept as an example.
const examples = import.meta.glob<string>('../../../tests/kinds/*/*.output.yaml', { query: '?raw', import: 'default', eager: true })

interface Told {
  reason: string
  message: string
  causes: Cause[]
}

function toldIn(text: string): Told[] {
  const output = parse(text) as { status?: { conditions?: Partial<Told>[] } }
  return (output.status?.conditions ?? []).map(({ reason = '', message = '', causes = [] }) => ({ reason, message, causes }))
}

const told = new Map(Object.values(examples).flatMap(toldIn).map((each) => [`${each.reason}: ${each.message}`, each]))

describe('what the controllers say', () => {
  it('is found', () => expect(told.size).toBeGreaterThan(40))

  it.each([...told.values()])('has Chinese: $reason: $message', ({ reason, message, causes }) => {
    if (reason && reason !== '-') expect(sayReason(reason, table), reason).toMatch(HAN)
    const said = stored(message, causes, 'zh', (text) => sayMessage(text, table) ?? text) ?? sayMessage(message, table)
    if (message) expect(said, message).toMatch(HAN)
  })
})
