import { useCallback } from 'react'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import { podsReferring } from '../../ui/references'
import type { Deleting } from '../../ui/useDelete'
import { words } from './words'

export function useDeleting(pods: readonly KubeObject[]): (secrets: readonly KubeObject[]) => Deleting {
  const w = useWords(words)
  return useCallback(
    (secrets) => {
      const users = new Set(secrets.flatMap((secret) => podsReferring('Secret', secret.metadata.name, pods)).map((pod) => pod.metadata.name))
      return { consequences: users.size > 0 ? w('deletesUsed', { users: [...users].slice(0, 5).join(', ') }) : w('deletes') }
    },
    [pods, w],
  )
}
