import { table, type ExpandedPart } from './features'

const files = import.meta.glob<Record<string, ExpandedPart>>('../features/*/expanded.tsx', { eager: true, import: 'EXPANDED' })

/** What a row of a list shows when it is opened. */
export const expandedNamed = table<ExpandedPart>('opened row', ...Object.values(files))
