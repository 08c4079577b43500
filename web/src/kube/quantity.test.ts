import { describe, expect, it } from 'vitest'
import { bytes, isQuantity, podSum, quantity } from './quantity'

describe('quantities', () => {
  it.each([
    ['500m', 0.5],
    ['2', 2],
    ['1Gi', 2 ** 30],
    ['1.5G', 1.5e9],
    ['1e3', 1000],
    ['', 0],
    ['abc', 0],
  ])('%s is %d', (text, value) => expect(quantity(text)).toBe(value))

  it('says what is none', () => {
    expect(isQuantity('1Gi')).toBe(true)
    expect(isQuantity('1GB')).toBe(false)
  })

  it('writes bytes with the unit that reads best', () => {
    expect(bytes(8 * 2 ** 30)).toBe('8.00Gi')
    expect(bytes(512)).toBe('512')
  })

  it('takes a limit as the request where there is none', () => {
    const sum = podSum({ containers: [{ resources: { limits: { cpu: '2', 'nvidia.com/gpu': '1' }, requests: { cpu: '500m' } } }] }, 4)
    expect(sum.requests).toEqual({ cpu: 2, 'nvidia.com/gpu': 4 })
    expect(sum.limits).toEqual({ cpu: 8, 'nvidia.com/gpu': 4 })
  })
})
