import { describe, expect, it } from 'vitest'
import { added, type Sample } from './samples'

const at = (time: number): Sample => ({ time, pods: new Map([['a', { cpu: time, memory: 1 }]]) })

describe('samples', () => {
  it('come one after the other', () => {
    expect(added(added([], at(10)), at(15)).map((each) => each.time)).toEqual([10, 15])
  })
  it('are taken once, whoever brings them', () => {
    const once = added([], at(10))
    expect(added(once, at(10))).toBe(once)
  })
  it('are kept for an hour', () => {
    expect(added([at(10), at(3_000)], at(3_700)).map((each) => each.time)).toEqual([3_000, 3_700])
  })
})
