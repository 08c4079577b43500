/** Resources by the names people know: requests.cpu is CPU (请求值). */
import { useMemo } from 'react'
import { useWords } from '../i18n'
import { isDevice } from '../kube'
import { words } from './words'

const KNOWN = {
  cpu: 'cpu',
  memory: 'memory',
  storage: 'storageSize',
  'ephemeral-storage': 'ephemeralStorage',
  pods: 'podCount',
  persistentvolumeclaims: 'claimCount',
} as const

export function useResourceName(): (resource: string) => string {
  const w = useWords(words)
  return useMemo(
    () => (resource) => {
      const [, scope, bare = ''] = /^(?:(requests|limits)\.)?(.*)$/.exec(resource) ?? []
      const counted = bare.startsWith('count/') ? bare.slice('count/'.length) : undefined
      if (counted) return w('countOf', { what: counted })
      const known = KNOWN[bare as keyof typeof KNOWN]
      const name = known ? w(known) : isDevice(bare) && /gpu/i.test(bare) ? `GPU (${bare})` : bare
      return scope && bare !== 'storage' && !isDevice(bare) ? `${name} (${w(scope === 'limits' ? 'limit' : 'request')})` : name
    },
    [w],
  )
}
