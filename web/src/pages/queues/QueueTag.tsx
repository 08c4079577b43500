import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { StateTag } from '../../ui/StateTag'
import { queueState } from './reading'
import { words } from './words'

const TONES = { open: 'good', closed: 'quiet', unused: 'bad' } as const

export function QueueTag({ queue }: { queue: KubeObject }) {
  const w = useWords(words)
  const state = queueState(queue)
  return <StateTag state={{ word: w(state), tone: TONES[state], reason: state === 'unused' ? w('unusedWhy') : undefined }} />
}
