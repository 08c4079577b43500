/** A few objects as links; `none` where there are none. */
import { Fragment } from 'react'
import { Link } from 'react-router-dom'
import type { KubeObject } from '../kube'
import { pathOf } from './paths'

const SHOWN = 5

export function ObjectLinks({ objects, namespace, none = '-' }: { objects: readonly KubeObject[]; namespace: string; none?: string }) {
  if (objects.length === 0) return <span className="quiet">{none}</span>
  return (
    <>
      {objects.slice(0, SHOWN).map((object, index) => {
        const to = pathOf(object, namespace)
        return (
          <Fragment key={object.metadata.uid ?? index}>
            {index > 0 && ', '}
            {to ? <Link to={to}>{object.metadata.name}</Link> : object.metadata.name}
          </Fragment>
        )
      })}
      {objects.length > SHOWN && ` +${objects.length - SHOWN}`}
    </>
  )
}
