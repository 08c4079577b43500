import { useCallback } from 'react'
import { useWords } from '../../i18n'
import { deleteObject, KINDS, type KubeObject } from '../../kube'
import type { Deleting } from '../../ui/useDelete'
import { explorerOf } from './files/explorer'
import { podsUsing } from './usage'
import { words } from './words'

/** Deleting takes the files with it; while somebody uses a claim it is refused with the name of who. */
export function useDeleting(pods: readonly KubeObject[]): (claims: readonly KubeObject[]) => Deleting {
  const w = useWords(words)
  return useCallback(
    (claims) => {
      const users = claims.flatMap((claim) => podsUsing(claim, pods))
      if (users.length === 0) return { consequences: w('deletes'), onDeleted: () => closeExplorers(claims, pods) }
      return { refused: true, consequences: w('inUse', { users: [...new Set(users.map(knownAs))].join(', ') }) }
    },
    [pods, w],
  )
}

/** A notebook's or a job's pod by the name that people gave: `first (managed-notebook-8cbc8-0)`. */
function knownAs(pod: KubeObject): string {
  const owner = pod.metadata.labels?.['tensorstack.dev/owner-name']
  return owner ? `${owner} (${pod.metadata.name})` : pod.metadata.name
}

function closeExplorers(claims: readonly KubeObject[], pods: readonly KubeObject[]): void {
  for (const claim of claims) {
    const pod = explorerOf(claim.metadata.name, pods)
    // One that is gone already is as good as closed.
    if (pod) void deleteObject(KINDS.Pod, pod.metadata.namespace, pod.metadata.name, pod.metadata.uid).catch(() => undefined)
  }
}
