import { describe, expect, it } from 'vitest'
import { applyEvent, applyEvents, listOf, mergeList } from './list'
import type { KubeObject, WatchEvent } from './types'

const pod = (name: string, resourceVersion: string, uid = name): KubeObject => ({
  metadata: { name, namespace: 'demo', uid, resourceVersion },
})
const event = (type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK', object: KubeObject): WatchEvent => ({ type, object })
const names = (list: { items: ReadonlyMap<string, KubeObject> }): string[] => [...list.items.values()].map((o) => o.metadata.name)

describe('a list and an event', () => {
  const list = listOf([pod('a', '1'), pod('b', '2')], '2')

  it('adds', () => {
    const next = applyEvent(list, event('ADDED', pod('c', '3')))
    expect(names(next)).toEqual(['a', 'b', 'c'])
    expect(next.resourceVersion).toBe('3')
    expect(names(list)).toEqual(['a', 'b'])
  })

  it('replaces in place and keeps the identity of the others', () => {
    const next = applyEvent(list, event('MODIFIED', pod('a', '3')))
    expect(names(next)).toEqual(['a', 'b'])
    expect(next.items.get('demo/a')?.metadata.resourceVersion).toBe('3')
    expect(next.items.get('demo/b')).toBe(list.items.get('demo/b'))
  })

  it('deletes', () => {
    expect(names(applyEvent(list, event('DELETED', pod('a', '3'))))).toEqual(['b'])
  })

  it('does not delete a namesake with another uid', () => {
    const next = applyEvents(list, [event('ADDED', pod('a', '4', 'new')), event('DELETED', pod('a', '3'))])
    expect(next.items.get('demo/a')?.metadata.uid).toBe('new')
  })

  it('moves on with a bookmark without a new map', () => {
    const next = applyEvent(list, event('BOOKMARK', { metadata: { name: '', resourceVersion: '9' } }))
    expect(next.resourceVersion).toBe('9')
    expect(next.items).toBe(list.items)
  })

  it('is the same list after an error event', () => {
    expect(applyEvent(list, { type: 'ERROR', object: { kind: 'Status', code: 410 } })).toBe(list)
  })

  it('applies many events in order', () => {
    const next = applyEvents(list, [event('ADDED', pod('c', '3')), event('DELETED', pod('c', '4')), event('MODIFIED', pod('b', '5'))])
    expect(names(next)).toEqual(['a', 'b'])
    expect(next.resourceVersion).toBe('5')
  })

  it('keeps what did not change when it is listed anew', () => {
    const next = mergeList(list, listOf([pod('b', '2'), pod('c', '8')], '8'))
    expect(names(next)).toEqual(['b', 'c'])
    expect(next.items.get('demo/b')).toBe(list.items.get('demo/b'))
  })
})
