/** A job's state and, right beside it, what keeps it, in the person's language. */
import { Tooltip } from 'antd'
import { useText, useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { StateTag } from '../../ui/StateTag'
import { stateOf } from '../../ui/state'
import { words as uiWords } from '../../ui/words'
import { useSaid } from '../../why/useSaid'
import { why } from '../../why/why'
import './jobs.css'
import { rolesOf } from './reading'
import { words } from './words'

export function JobState({ job, wide = false }: { job: KubeObject; wide?: boolean }) {
  const t = useText()
  const state = stateOf(job)
  const said = useSaid()
  const answer = why(job)
  const parameters = answer && said.parameters(answer.parameters)
  const cause = answer && t(answer.cause, parameters)
  return (
    <span className={wide ? 'job-state wide' : 'job-state'}>
      <StateTag state={state} reason={false} />
      {/* Done · Succeeded: the word of the documents, and the phase that kubectl shows */}
      {state.reason && !answer && <span className="quiet">{state.reason}</span>}
      {answer && cause && (
        <Tooltip title={<span className="break">{`${cause}\n${t(answer.nextStep, parameters)}`}</span>} trigger={['hover', 'focus']} styles={{ root: { maxWidth: 520 } }}>
          <span className="quiet cause" tabIndex={0}>
            {cause.split('\n')[0]}
          </span>
        </Tooltip>
      )}
    </span>
  )
}

/** What a row of the list has no room for: the whole cause, what to do, and the replicas. */
export function JobMore({ job }: { job: KubeObject }) {
  const w = useWords(words)
  const ui = useWords(uiWords)
  const t = useText()
  const said = useSaid()
  const answer = why(job)
  const parameters = answer && said.parameters(answer.parameters)
  return (
    <div style={{ display: 'grid', gap: 4 }}>
      {answer && (
        <>
          <div className="break"><strong>{ui('why')}:</strong> {t(answer.cause, parameters)}</div>
          {t(answer.nextStep) && <div className="break"><strong>{ui('nextStep')}:</strong> {t(answer.nextStep, parameters)}</div>}
        </>
      )}
      <div><strong>{w('replicas')}:</strong> {rolesOf(job).map((role) => `${role.name}: ${role.replicas}`).join(', ')}</div>
    </div>
  )
}
