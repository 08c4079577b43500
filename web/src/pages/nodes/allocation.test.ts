import { describe, expect, it } from 'vitest'
import { allocations, amount, linesOf, NOTHING } from './allocation'

const pod = (node: string, cpu: string, phase = 'Running') => ({
  metadata: { name: 'p' },
  spec: { nodeName: node, containers: [{ resources: { requests: { cpu }, limits: { 'nvidia.com/gpu': '1' } } }] },
  status: { phase },
})

describe('allocation', () => {
  it('sums what has not ended, by node', () => {
    const found = allocations([pod('a', '500m'), pod('a', '1'), pod('a', '4', 'Succeeded'), pod('b', '2')])
    expect(found.get('a')?.requests.cpu).toBe(1.5)
    expect(found.get('a')?.requests['nvidia.com/gpu']).toBe(2)
    expect(found.get('a')?.pods).toHaveLength(2)
    expect(found.get('b')?.requests.cpu).toBe(2)
  })

  it('stands beside capacity', () => {
    const node = { metadata: { name: 'a' }, status: { capacity: { cpu: '4', pods: '110', 'hugepages-2Mi': '0' }, allocatable: { cpu: '3', pods: '110' } } }
    expect(linesOf(node, NOTHING)).toEqual([
      { resource: 'cpu', capacity: 4, allocatable: 3, allocated: 0 },
      { resource: 'pods', capacity: 110, allocatable: 110, allocated: 0 },
    ])
    expect(amount('memory', 2 ** 30)).toBe('1.00Gi')
  })
})
