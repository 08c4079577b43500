import { describe, expect, it } from 'vitest'
import { bars, formatAmount } from './quota'

const quota = (hard: object, used: object) => ({ metadata: { name: 'q' }, status: { hard, used } })

describe('quota bars', () => {
  it('compare used with hard, CPU and memory first', () => {
    const made = bars([quota({ pods: '10', 'requests.nvidia.com/gpu': '4', cpu: '16' }, { pods: '9', cpu: '4' })])
    expect(made.map((bar) => bar.resource)).toEqual(['cpu', 'requests.nvidia.com/gpu', 'pods'])
    expect(made[0]?.share).toBe(0.25)
    expect(made[2]?.share).toBe(0.9)
  })

  it('take the tightest of several', () => {
    expect(bars([quota({ cpu: '16' }, { cpu: '4' }), quota({ cpu: '5' }, { cpu: '4' })])[0]?.hard).toBe(5)
  })

  it('read well', () => {
    expect(formatAmount('limits.memory', 2 ** 31)).toBe('2.00Gi')
    expect(formatAmount('requests.storage', 2 ** 30)).toBe('1.00Gi')
    expect(formatAmount('cpu', 1.5)).toBe('1.50')
    expect(formatAmount('persistentvolumeclaims', 3)).toBe('3')
  })
})
