/** What keeps an object and what to do about it, above its page. Nothing when all is well. */
import { ClockCircleOutlined, CloseCircleFilled } from '@ant-design/icons'
import { useQuery } from '@tanstack/react-query'
import { useText, useWords } from '../i18n'
import { readLog, type KubeObject } from '../kube'
import { useSaid } from '../why/useSaid'
import { useCauses } from '../why/useCauses'
import { sayAll, type Why } from '../why/why'
import { words } from './words'

const TAIL = 12

export function WhyBox({ object, pods, events, claims }: { object: KubeObject; pods?: readonly KubeObject[]; events?: readonly KubeObject[]; claims?: readonly KubeObject[] }) {
  const answer = sayAll(useCauses(object, pods, events, claims))
  return answer ? <Explained answer={answer} namespace={object.metadata.namespace ?? ''} /> : null
}

function Explained({ answer, namespace }: { answer: Why; namespace: string }) {
  const w = useWords(words)
  const t = useText()
  const parameters = useSaid().parameters(answer.parameters)
  const { log } = answer
  const tail = useQuery({
    queryKey: ['tail', namespace, log?.pod, log?.container, log?.previous],
    enabled: log !== undefined,
    retry: false,
    queryFn: ({ signal }) => readLog(namespace, log!.pod, { container: log!.container, previous: log!.previous, tailLines: TAIL, signal }),
  })
  return (
    <div className={answer.failed ? 'why failed' : 'why'} role="status">
      <span aria-hidden style={{ fontSize: 18, color: answer.failed ? '#c4272f' : '#b26a00' }}>
        {answer.failed ? <CloseCircleFilled /> : <ClockCircleOutlined />}
      </span>
      <div className="grow">
        <div className="break"><strong>{w('why')}:</strong> {t(answer.cause, parameters)}</div>
        {t(answer.nextStep) && <div className="break"><strong>{w('nextStep')}:</strong> {t(answer.nextStep, parameters)}</div>}
        {tail.data && (
          <>
            <div className="quiet" style={{ marginTop: 6 }}>{w('lastLines')} ({log!.pod})</div>
            <pre className="mono break">{tail.data.trimEnd()}</pre>
          </>
        )}
      </div>
    </div>
  )
}
