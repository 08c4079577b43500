/** Kubernetes quantities: `500m`, `2Gi`, `1e3`. Pure. */

const FACTORS: Record<string, number> = {
  n: 1e-9,
  u: 1e-6,
  m: 1e-3,
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  E: 1e18,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
  Ei: 2 ** 60,
}

const FORM = /^([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/

export const isQuantity = (text: string): boolean => FORM.test(text.trim())

/** 0 for what is absent or no quantity. */
export function quantity(value: string | number | undefined | null): number {
  if (typeof value === 'number') return value
  const match = FORM.exec((value ?? '').trim())
  return match ? Number(match[1]) * (FACTORS[match[2] ?? ''] ?? 1) : 0
}

/** Cores with two digits, as the documents show them: 4.00 */
export const cores = (value: number): string => value.toFixed(2)

/** Bytes with the unit that reads best: 8.00Gi */
export function bytes(value: number): string {
  for (const unit of ['Ti', 'Gi', 'Mi', 'Ki']) {
    const factor = FACTORS[unit] ?? 1
    if (Math.abs(value) >= factor) return `${(value / factor).toFixed(2)}${unit}`
  }
  return `${Math.round(value)}`
}

interface Container {
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> }
}

export interface Sum {
  requests: Record<string, number>
  limits: Record<string, number>
}

export const NO_SUM: Sum = { requests: {}, limits: {} }

/** What a pod spec asks for, times `count`; a limit without request is the request as well. */
export function podSum(spec: { containers?: Container[] } | undefined, count = 1, into: Sum = { requests: {}, limits: {} }): Sum {
  for (const container of spec?.containers ?? []) {
    const limits = container.resources?.limits ?? {}
    const requests = { ...limits, ...container.resources?.requests }
    for (const [name, value] of Object.entries(requests)) into.requests[name] = (into.requests[name] ?? 0) + quantity(value) * count
    for (const [name, value] of Object.entries(limits)) into.limits[name] = (into.limits[name] ?? 0) + quantity(value) * count
  }
  return into
}

/** `nvidia.com/gpu` and its like: devices are resources with a domain in their name. */
export const isDevice = (resource: string): boolean => resource.includes('/') && !/^(hugepages|count\/)/.test(resource)

export const devices = (amounts: Record<string, number>): [string, number][] =>
  Object.entries(amounts).filter(([name, amount]) => isDevice(name) && amount > 0)
