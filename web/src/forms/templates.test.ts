import { describe, expect, it } from 'vitest'
import { resourcesOf, templateOf, templatesFor } from './templates'

const GI = 2 ** 30
const named = (name: string, nodes: Parameters<typeof templatesFor>[0]) => templatesFor(nodes).find((each) => each.name === name)

describe('templates', () => {
  it('are as the documents name them where nodes are large or unknown', () => {
    for (const nodes of [[], [{ cpu: 64, memory: 256 * GI, gpu: 0 }]]) {
      const large = named('large', nodes)!
      expect(large.fitted).toBe(false)
      expect(resourcesOf(large)).toEqual({ requests: { cpu: '4', memory: '16Gi' }, limits: { cpu: '16', memory: '32Gi' } })
    }
  })

  it('shrink to a small machine and leave room beside them', () => {
    const large = named('large', [{ cpu: 2, memory: 23 * GI, gpu: 0 }])!
    expect(large.fitted).toBe(true)
    expect(resourcesOf(large)).toEqual({ requests: { cpu: '500m', memory: '5888Mi' }, limits: { cpu: '2', memory: '23Gi' } })
  })

  it('offer GPUs only where there are some', () => {
    expect(named('large (nvidia gpu)', [{ cpu: 8, memory: 64 * GI, gpu: 0 }])).toBeUndefined()
    expect(resourcesOf(named('large (nvidia gpu)', [{ cpu: 64, memory: 256 * GI, gpu: 4 }])!).limits).toMatchObject({ 'nvidia.com/gpu': '1' })
  })

  it('are recognised in what was written, however it is spelled', () => {
    const templates = templatesFor([])
    expect(templateOf({ requests: { cpu: '500m', memory: '2048Mi' }, limits: { cpu: '2', memory: '4Gi' } }, templates)?.name).toBe('small')
    expect(templateOf({ requests: { cpu: '1' } }, templates)).toBeUndefined()
    expect(templateOf(undefined, templates)).toBeUndefined()
  })
})
