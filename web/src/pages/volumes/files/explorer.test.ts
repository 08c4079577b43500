import { describe, expect, it } from 'vitest'
import { crumbsOf, explorerName, explorerOf, explorerPod, isExplorer, previewOf, textOf } from './explorer'
import { scalarsIn } from './tfevents'

const claim = (name: string) => ({ metadata: { name, namespace: 'demo' } })

describe('the explorer', () => {
  it('has a pod that is found again and mounts the claim', () => {
    const long = `${'a'.repeat(60)}-bcd`
    const pod = explorerPod(claim(long), 'danlu:1')
    expect(pod.metadata.name.length).toBeLessThanOrEqual(63)
    expect(pod.spec.volumes[0].persistentVolumeClaim.claimName).toBe(long)
    expect(isExplorer(pod)).toBe(true)
    expect(explorerOf(long, [pod])).toBe(pod)
    expect(explorerOf('other', [pod])).toBeUndefined()
    expect(explorerName('mnist')).toBe('files-mnist')
  })

  it('knows where it is and what it sees', () => {
    expect(crumbsOf('/files')).toEqual([])
    expect(crumbsOf('/files/a/b')).toEqual([['a', '/files/a'], ['b', '/files/a/b']])
    expect(previewOf('events.out.tfevents.1.host')).toBe('events')
    expect(previewOf('loss.PNG')).toBe('image')
    expect(previewOf('train.py')).toBe('text')
  })

  it('tells text from bytes, also when a character is cut', () => {
    expect(textOf(new TextEncoder().encode('丹炉'))).toBe('丹炉')
    expect(textOf(new TextEncoder().encode('丹炉').subarray(0, 5))).toBe('丹')
    expect(textOf(new Uint8Array([0x89, 0x50, 0]))).toBeUndefined()
    expect(textOf(new Uint8Array([0xff, 0xfe]))).toBeUndefined()
  })
})

/** A record as TensorBoard's writers make it; checksums are not looked at. */
function record(step: number, tag: string, value: number, tensor: boolean): number[] {
  const bytes = (field: number, body: number[]): number[] => [(field << 3) | 2, body.length, ...body]
  const float = [...new Uint8Array(new Float32Array([value]).buffer)]
  const shown = tensor ? bytes(8, [0x08, 1, ...bytes(4, float)]) : [(2 << 3) | 5, ...float]
  const summary = bytes(5, bytes(1, [...bytes(1, [...new TextEncoder().encode(tag)]), ...shown]))
  const event = [0x09, ...new Uint8Array(new Float64Array([1000 + step]).buffer), 0x10, step, ...summary]
  return [event.length, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ...event, 0, 0, 0, 0]
}

describe('a TensorBoard log', () => {
  it('gives its scalars in both ways of writing', () => {
    const file = new Uint8Array([...record(1, 'loss', 0.5, false), ...record(2, 'loss', 0.25, false), ...record(1, 'accuracy', 0.75, true)])
    expect(scalarsIn(file)).toEqual([
      { tag: 'accuracy', times: [1001], steps: [1], values: [0.75] },
      { tag: 'loss', times: [1001, 1002], steps: [1, 2], values: [0.5, 0.25] },
    ])
  })
  it('stops where a record is not whole', () => {
    const file = new Uint8Array([...record(1, 'loss', 0.5, false), ...record(2, 'loss', 0.25, false).slice(0, 20)])
    expect(scalarsIn(file)[0]?.steps).toEqual([1])
    expect(scalarsIn(new Uint8Array())).toEqual([])
  })
})
