import { useCallback } from 'react'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import type { Deleting } from '../../ui/useDelete'
import { podsUsing } from './usage'
import { words } from './words'

/** Deleting takes the files with it; while somebody uses a claim it is refused with the name of who. */
export function useDeleting(pods: readonly KubeObject[]): (claims: readonly KubeObject[]) => Deleting {
  const w = useWords(words)
  return useCallback(
    (claims) => {
      const users = claims.flatMap((claim) => podsUsing(claim, pods))
      if (users.length === 0) return { consequences: w('deletes') }
      return { refused: true, consequences: w('inUse', { users: [...new Set(users.map((pod) => pod.metadata.name))].join(', ') }) }
    },
    [pods, w],
  )
}
