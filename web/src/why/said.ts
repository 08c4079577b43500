/** What components of Kubernetes said in English, in Chinese as far as it is known. Pure. */

import { contract } from './table'

export interface Table {
  /** by the word that stands for a cause: FailedScheduling */
  readonly reasons: Readonly<Record<string, string>>
  /** tried in order; `$1` is what was found, `@1` is that said again, `@&` the whole text as a reason */
  readonly sentences: readonly (readonly [pattern: RegExp, words: string])[]
}

/** As it is in src/danlu/diagnose/tables/chinese.json. */
export const tableOf = (read: { reasons: Record<string, string>; sentences: string[][] }): Table => ({
  reasons: read.reasons,
  sentences: read.sentences.map(([pattern, words]) => [new RegExp(pattern!), words!]),
})

/** undefined: it is not known. Kubeflow's begin with the kind: PyTorchJobCreated. */
export const sayReason = (reason: string, table: Table): string | undefined => table.reasons[reason] ?? table.reasons[reason.split('Job').slice(1).join('Job')]

/** undefined: it is not known. Lines after the first are a program's own and stay. */
export function sayMessage(message: string, table: Table): string | undefined {
  const [first = '', ...rest] = message.split('\n')
  const said = first.length > contract.longest ? undefined : sayLine(first, table, contract.nestedMessages)
  return said === undefined ? undefined : [said, ...rest].join('\n')
}

/** `inner`: so many messages within the message. */
function sayLine(line: string, table: Table, inner: number): string | undefined {
  for (const [pattern, words] of table.sentences) {
    const found = pattern.exec(line)
    if (!found) continue
    const said = words.replace(/([$@])(\d|&)/g, (_, how: string, which: string) => {
      if (which === '&') return sayReason(line, table) ?? line
      const part = found[Number(which)] ?? ''
      return how === '@' && part && inner ? (sayLine(part, table, inner - 1) ?? part) : part
    })
    return said.trimEnd()
  }
  return undefined
}
