/** Sizes that people choose by name, as the documents do. Pure. */
import { quantity } from '../kube/quantity'

export interface Amounts {
  cpu: number // cores
  memory: number // bytes
  gpu: number
}

export interface Template {
  name: string
  words: 'small' | 'medium' | 'large' | 'largeGpu'
  requests: Amounts
  limits: Amounts
  /** smaller than its name promises, because no node has that much */
  fitted: boolean
}

const GI = 2 ** 30
const amounts = (cpu: number, gi: number, gpu = 0): Amounts => ({ cpu, memory: gi * GI, gpu })

const NAMED: readonly Omit<Template, 'fitted'>[] = [
  { name: 'small', words: 'small', requests: amounts(0.5, 2), limits: amounts(2, 4) },
  { name: 'medium', words: 'medium', requests: amounts(2, 8), limits: amounts(8, 16) },
  { name: 'large', words: 'large', requests: amounts(4, 16), limits: amounts(16, 32) },
  { name: 'large (nvidia gpu)', words: 'largeGpu', requests: amounts(4, 16, 1), limits: amounts(16, 32, 1) },
]

/** A notebook asks for at most this part of a node, so that its jobs still find room beside it. */
const LARGEST_PART = 1 / 4

/** The templates, made to fit the largest node; `nodes` is empty where the person may not see them. */
export function templatesFor(nodes: readonly { cpu: number; memory: number; gpu: number }[]): Template[] {
  const largest = nodes.reduce<Amounts>((most, node) => ({ cpu: Math.max(most.cpu, node.cpu), memory: Math.max(most.memory, node.memory), gpu: Math.max(most.gpu, node.gpu) }), amounts(0, 0))
  if (nodes.length === 0 || largest.cpu === 0) return NAMED.map((each) => ({ ...each, fitted: false }))
  return NAMED.filter((each) => each.limits.gpu <= largest.gpu).map((each) => {
    const requests = atMost(each.requests, { ...largest, cpu: largest.cpu * LARGEST_PART, memory: largest.memory * LARGEST_PART })
    const limits = atMost(each.limits, largest)
    return { ...each, requests, limits, fitted: requests.cpu < each.requests.cpu || requests.memory < each.requests.memory }
  })
}

const atMost = (wanted: Amounts, most: Amounts): Amounts => ({ cpu: Math.min(wanted.cpu, most.cpu), memory: Math.min(wanted.memory, most.memory), gpu: wanted.gpu })

interface Resources {
  requests?: Record<string, string>
  limits?: Record<string, string>
}

export const GPU = 'nvidia.com/gpu'

const written = ({ cpu, memory, gpu }: Amounts): Record<string, string> => ({
  cpu: Number.isInteger(cpu) ? String(cpu) : `${Math.round(cpu * 1000)}m`,
  memory: memory % GI === 0 ? `${memory / GI}Gi` : `${Math.floor(memory / 2 ** 20)}Mi`,
  ...(gpu > 0 ? { [GPU]: String(gpu) } : {}),
})

export const resourcesOf = (template: Template): Resources => ({ requests: written(template.requests), limits: written(template.limits) })

/** The template that stands for these resources, if one does. */
export function templateOf(resources: Resources | undefined, templates: readonly Template[]): Template | undefined {
  return templates.find((template) => {
    const own = resourcesOf(template)
    return (['requests', 'limits'] as const).every((part) => {
      const [left, right] = [own[part] ?? {}, resources?.[part] ?? {}]
      return [...new Set([...Object.keys(left), ...Object.keys(right)])].every((name) => quantity(left[name]) === quantity(right[name]))
    })
  })
}
