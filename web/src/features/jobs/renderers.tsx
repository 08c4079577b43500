/** What lists and pages say of a job. */
import { useWords } from '../../i18n'
import type { Renderer } from '../../kinds/features'
import { bytes, cores, devices, type KubeObject } from '../../kube'
import { Pair } from '../../ui/Share'
import { stateOf } from '../../ui/state'
import { JobState } from './JobState'
import { knownSum, schedulingOf } from './reading'
import { words } from './words'

const NVIDIA = 'nvidia.com/gpu'

type W = (key: keyof typeof words) => string

export const schedulerWord = (job: KubeObject, w: W): string => {
  const { scheduler } = schedulingOf(job)
  return scheduler === 't9k' ? w('t9kScheduler') : scheduler === 'default' ? w('defaultScheduler') : scheduler
}

/** 4.00 / 8.00: requests and limits of all replicas. */
export function Amounts({ of, resource, form }: { of: KubeObject; resource: string; form: (value: number) => string }) {
  const { requests, limits } = knownSum(of)
  const show = (value: number | undefined): string => (value ? form(value) : '-')
  return <Pair left={show(requests[resource])} right={show(limits[resource])} />
}

/** 2, or amd.com/gpu: 2 where it is not NVIDIA's. */
export function Devices({ of }: { of: KubeObject }) {
  const found = devices(knownSum(of).requests)
  if (found.length === 0) return <>-</>
  return <span title={found.map(([name, count]) => `${name}: ${count}`).join(', ')}>{found.map(([name, count]) => (name === NVIDIA ? String(count) : `${name}: ${count}`)).join(', ')}</span>
}

function Scheduler({ object }: { object: KubeObject }) {
  const w = useWords(words)
  return <>{schedulerWord(object, w)}</>
}

const amount = (resource: 'cpu' | 'memory', form: (value: number) => string): Renderer => ({
  Show: ({ object }) => <Amounts of={object} resource={resource} form={form} />,
  sort: (job) => knownSum(job).requests[resource] ?? 0,
})

export const RENDERERS: Record<string, Renderer> = {
  'job-state': { title: words.status, Show: ({ object }) => <JobState job={object} />, sort: (job) => stateOf(job).word },
  'job-cpu': amount('cpu', cores),
  'job-memory': amount('memory', bytes),
  'job-devices': {
    Show: ({ object }) => <Devices of={object} />,
    sort: (job) => devices(knownSum(job).requests).reduce((sum, [, count]) => sum + count, 0),
    filter: (job) => devices(knownSum(job).requests).map(([name]) => name),
  },
  'job-scheduler': { Show: Scheduler, filter: (job) => schedulingOf(job).scheduler, label: (value) => (value === 't9k' ? words.t9kScheduler : value === 'default' ? words.defaultScheduler : undefined) },
  'job-queue': { Show: ({ object }) => <>{schedulingOf(object).queue ?? '-'}</>, filter: (job) => schedulingOf(job).queue },
}
