/** What a sentence ends with that an API server says for us (a rule of a CRD, a policy): `… [DL-CODE name=value]`. Pure. */

import { contract } from '../../../src/danlu/diagnose/tables/causes.json'

export interface Tail {
  code: string
  params: Readonly<Record<string, string>>
}

const TAIL = new RegExp(contract.tail)

export function tailOf(message: string): Tail | undefined {
  const found = TAIL.exec(message)
  if (!found) return undefined
  const pairs = found[2]!.split(' ').filter(Boolean)
  return { code: found[1]!, params: Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)])) }
}

export const withoutTail = (message: string): string => message.replace(TAIL, '')
