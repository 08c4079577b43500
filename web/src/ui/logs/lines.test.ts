import { describe, expect, it } from 'vitest'
import { MergedLines, SourceLines, stampOf } from './lines'

const encode = (text: string): Uint8Array => new TextEncoder().encode(text)
const all = (source: SourceLines): string[] => Array.from({ length: source.count }, (_, i) => source.text(i))

describe('log lines', () => {
  it('are cut at newlines, wherever the pieces end', () => {
    const source = new SourceLines(false)
    for (const piece of ['one\ntw', 'o\n', '三', '\nlast']) source.append(encode(piece))
    expect(all(source)).toEqual(['one', 'two', '三'])
    source.finish()
    expect(all(source)).toEqual(['one', 'two', '三', 'last'])
  })

  it('joins characters that were cut between two pieces', () => {
    const bytes = encode('丹炉\n')
    const source = new SourceLines(false)
    source.append(bytes.slice(0, 2))
    source.append(bytes.slice(2))
    expect(all(source)).toEqual(['丹炉'])
  })

  it('shows the last state of a line that was redrawn', () => {
    const source = new SourceLines(false)
    source.append(encode('10%\r50%\r100%\r\n'))
    expect(all(source)).toEqual(['100%'])
  })

  it('takes the time off', () => {
    const source = new SourceLines(true)
    source.append(encode('2026-01-02T03:04:05.5Z hello world\n'))
    expect(source.text(0)).toBe('hello world')
    expect(source.stamp(0)).toBe(Date.parse('2026-01-02T03:04:05.500Z'))
  })

  it('reads offsets', () => {
    const text = '2026-01-02T03:04:05+08:00'
    expect(stampOf(encode(text), 0, text.length)).toBe(Date.parse(text))
  })

  it('finds', () => {
    const source = new SourceLines(false)
    source.append(encode('a\nLoss 0.5\nb\nloss 0.4\n'))
    expect([...source.find('loss')].flat()).toEqual([1, 3])
  })

  it('merges ranks by time, also when a rank comes late', () => {
    const [a, b] = [new SourceLines(true), new SourceLines(true)]
    a.append(encode('2026-01-01T00:00:01Z a1\n2026-01-01T00:00:03Z a3\n'))
    const merged = new MergedLines()
    merged.update([a, b], [0, 1])
    b.append(encode('2026-01-01T00:00:02Z b2\n'))
    expect(merged.update([a, b], [0, 1])).toBe(false)
    const texts = Array.from({ length: merged.count }, (_, i) => [a, b][merged.source(i)]!.text(merged.line(i)))
    expect(texts).toEqual(['a1', 'b2', 'a3'])
    b.append(encode('2026-01-01T00:00:04Z b4\n'))
    expect(merged.update([a, b], [0, 1])).toBe(true)
    expect(merged.count).toBe(4)
    merged.update([a, b], [1])
    expect(merged.count).toBe(2)
  })

  it('holds a million lines', () => {
    const source = new SourceLines(false)
    const piece = encode('epoch 1 step 100 loss 0.12345 and some words more\n'.repeat(10_000))
    for (let i = 0; i < 100; i++) source.append(piece)
    expect(source.count).toBe(1_000_000)
    const merged = new MergedLines()
    merged.update([source], [0])
    expect(merged.count).toBe(1_000_000)
  })
})
