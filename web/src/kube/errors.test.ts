import { describe, expect, it } from 'vitest'
import { KubeError, messageOf, Unreachable, wholeMessageOf } from './errors'

describe('what is shown of an error', () => {
  it('has no code for programs, which the whole message keeps', () => {
    const error = new KubeError(422, 'Invalid', 'resumeSpecs cannot be changed [DL-RESUME-FIXED]')
    expect(messageOf(error)).toBe('resumeSpecs cannot be changed')
    expect(wholeMessageOf(error)).toBe(error.message)
    expect(messageOf(new Unreachable())).toBe('the server does not answer')
    expect(messageOf(new Error('an array [a b]'))).toBe('an array [a b]')
  })
})
