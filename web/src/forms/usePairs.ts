/** A map as rows, while they are written: for a moment two keys may be the same, and neither may lose its value by that. */
import { useState } from 'react'

type Pair = [key: string, value: string]

export function usePairs(map: Readonly<Record<string, string>>, put: (map: Record<string, string>) => void): [readonly Pair[], (rows: Pair[]) => void] {
  const [rows, setRows] = useState<Pair[]>(() => Object.entries(map))
  // What differs was changed elsewhere: by an import, or in the YAML.
  const own = JSON.stringify(Object.fromEntries(rows)) === JSON.stringify(map)
  const save = (next: Pair[]): void => {
    setRows(next)
    put(Object.fromEntries(next))
  }
  return [own ? rows : Object.entries(map), save]
}
