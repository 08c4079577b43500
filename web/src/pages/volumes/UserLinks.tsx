import { Fragment } from 'react'
import { Link } from 'react-router-dom'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { pathOf } from '../../ui/paths'
import { words } from './words'

/** The pods that use a claim, as links. */
export function UserLinks({ pods, namespace }: { pods: readonly KubeObject[]; namespace: string }) {
  const w = useWords(words)
  if (pods.length === 0) return <span className="quiet">{w('nobody')}</span>
  return (
    <>
      {pods.slice(0, 3).map((pod, index) => (
        <Fragment key={pod.metadata.uid}>
          {index > 0 && ', '}
          <Link to={pathOf(pod, namespace) ?? ''}>{pod.metadata.name}</Link>
        </Fragment>
      ))}
      {pods.length > 3 && ` +${pods.length - 3}`}
    </>
  )
}
