/** A job's state and, right beside it, what keeps it, in the person's language. */
import { Tooltip } from 'antd'
import { useText } from '../../i18n'
import type { KubeObject } from '../../kube'
import { StateTag } from '../../ui/StateTag'
import { stateOf } from '../../ui/state'
import { why } from '../../why/why'
import './jobs.css'

export function JobState({ job, wide = false }: { job: KubeObject; wide?: boolean }) {
  const t = useText()
  const state = stateOf(job)
  const answer = why(job)
  const cause = answer ? t(answer.cause, answer.parameters) : undefined
  return (
    <span className={wide ? 'job-state wide' : 'job-state'}>
      <StateTag state={state} reason={false} />
      {/* Done · Succeeded: the word of the documents, and the phase that kubectl shows */}
      {state.reason && !answer && <span className="quiet">{state.reason}</span>}
      {answer && cause && (
        <Tooltip title={<span className="break">{`${cause}\n${t(answer.nextStep, answer.parameters)}`}</span>} styles={{ root: { maxWidth: 520 } }}>
          <span className="quiet cause" tabIndex={0}>
            {cause.split('\n')[0]}
          </span>
        </Tooltip>
      )}
    </span>
  )
}
