/** A job's state and, right beside it, what keeps it, in the person's language. */
import { Tooltip } from 'antd'
import { useText } from '../../i18n'
import type { KubeObject } from '../../kube'
import { StateTag } from '../../ui/StateTag'
import { stateOf } from '../../ui/state'
import { why } from '../../why/why'

export function JobState({ job, wide = false }: { job: KubeObject; wide?: boolean }) {
  const t = useText()
  const state = stateOf(job)
  const answer = why(job)
  const cause = answer ? t(answer.cause, answer.parameters) : undefined
  return (
    <span className="row" style={{ flexWrap: wide ? 'wrap' : 'nowrap', gap: 6 }}>
      <StateTag state={state} reason={false} />
      {/* Done · Succeeded: the word of the documents, and the phase that kubectl shows */}
      {state.reason && !answer && <span className="quiet">{state.reason}</span>}
      {answer && cause && (
        <Tooltip title={<span className="break">{`${cause}\n${t(answer.nextStep, answer.parameters)}`}</span>} styles={{ root: { maxWidth: 520 } }}>
          <span className="quiet" tabIndex={0} style={{ overflow: 'hidden', textOverflow: 'ellipsis', whiteSpace: 'nowrap', maxWidth: wide ? 560 : 170, display: 'inline-block' }}>
            {cause.split('\n')[0]}
          </span>
        </Tooltip>
      )}
    </span>
  )
}
