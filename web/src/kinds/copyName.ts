/** A free name for a copy: mnist → mnist-2 → mnist-3. */
export function copyName(name: string, taken: ReadonlySet<string>): string {
  const stem = name.replace(/-\d{1,3}$/, '')
  for (let number = 2; ; number++) {
    const tried = `${stem}-${number}`
    if (!taken.has(tried)) return tried
  }
}
