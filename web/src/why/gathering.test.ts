import { describe, expect, it } from 'vitest'
import { gathered, MOST } from './gathering'

describe('questions of a moment', () => {
  it('become one, and each gets its own answer', async () => {
    const asked: number[][] = []
    const double = gathered<number, number>(async (all) => {
      asked.push([...all])
      return all.map((each) => each * 2)
    })
    expect(await Promise.all([1, 2, 3].map(double))).toEqual([2, 4, 6])
    expect(await double(4)).toBe(8)
    expect(asked).toEqual([[1, 2, 3], [4]])
  })

  it('are cut where they are too many for one', async () => {
    const sizes: number[] = []
    const same = gathered<number, number>(async (all) => {
      sizes.push(all.length)
      return all
    })
    await Promise.all(Array.from({ length: MOST + 1 }, (_, index) => same(index)))
    expect(sizes).toEqual([MOST, 1])
  })

  it('fail together', async () => {
    const broken = gathered<number, number>(async () => {
      throw new Error('gone')
    })
    await expect(Promise.all([broken(1), broken(2)])).rejects.toThrow('gone')
  })
})
