/** A page tells the frame where it stands: `useCrumbs([{ label, to }, { label }])`. The last one is the title of the tab too. */
import { createContext, useContext, useEffect, type Dispatch, type SetStateAction } from 'react'

export interface Crumb {
  label: string
  to?: string
}

export const CrumbsContext = createContext<Dispatch<SetStateAction<readonly Crumb[]>>>(() => undefined)

export function useCrumbs(crumbs: readonly Crumb[]): void {
  const set = useContext(CrumbsContext)
  const key = JSON.stringify(crumbs)
  useEffect(() => {
    set(crumbs)
    document.title = `${[...crumbs].reverse().map((crumb) => crumb.label).join(' · ')} · Danlu`
    return () => set([])
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the key says all of `crumbs`
  }, [key, set])
}
