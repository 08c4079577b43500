import type { ExpandedPart } from '../../kinds/features'
import { JobMore } from './JobState'

export const EXPANDED: Record<string, ExpandedPart> = { 'job-more': (job) => <JobMore job={job} /> }
