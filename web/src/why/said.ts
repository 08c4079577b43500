/** What a cluster said in English, said in another language as far as it is known. Pure. */

export interface Table {
  /** by the word that stands for a cause: FailedScheduling */
  readonly reasons: Readonly<Record<string, string>>
  /** tried in order; `$1` is what was found, `@1` is that said again, `@&` the whole text as a reason */
  readonly rules: readonly (readonly [pattern: RegExp, words: string])[]
}

/** Kubeflow's reasons begin with the kind: PyTorchJobCreated. */
const PREFIX = /^(?:PyTorchJob|TFJob)(?=[A-Z])/

const ENDED = /^Pod [\w.-]+ (?:ended with exit code|failed)/

/** undefined: it is not known. */
export const sayReason = (reason: string, table: Table): string | undefined => table.reasons[reason] ?? table.reasons[reason.replace(PREFIX, '')]

/** undefined: it is not known. Lines after the first are a program's own and stay. */
export function sayMessage(message: string, table: Table): string | undefined {
  const [first = '', ...rest] = message.split('\n')
  const said = sayLine(first, table)
  if (said === undefined) return undefined
  const [second = '', ...others] = rest
  // Kubeflow's jobs name the replica in a line of its own.
  return [said, ...(ENDED.test(second) ? [sayLine(second, table) ?? second, ...others] : rest)].join('\n')
}

function sayLine(line: string, table: Table): string | undefined {
  for (const [pattern, words] of table.rules) {
    const found = pattern.exec(line)
    if (!found) continue
    const said = words.replace(/([$@])(\d|&)/g, (_, how: string, which: string) => {
      if (which === '&') return sayReason(line, table) ?? line
      const part = found[Number(which)] ?? ''
      return how === '@' && part ? (sayLine(part, table) ?? part) : part
    })
    return said.trimEnd()
  }
  return undefined
}
