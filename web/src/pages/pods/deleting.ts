import { useCallback } from 'react'
import { useWords } from '../../i18n'
import type { KubeObject } from '../../kube'
import type { Deleting } from '../../ui/useDelete'
import { ownerOf } from './reading'
import { words } from './words'

export function useDeleting(): (pods: readonly KubeObject[]) => Deleting {
  const w = useWords(words)
  return useCallback(
    (pods) => {
      const owners = [...new Set(pods.flatMap((pod) => ownerOf(pod) ?? []).map((owner) => `${owner.kind} ${owner.name}`))]
      const text = [w('deletes'), ...(owners.length > 0 ? [w('deletesOwned', { owners: owners.slice(0, 5).join(', ') })] : [])]
      return { consequences: text.join('\n') }
    },
    [w],
  )
}
