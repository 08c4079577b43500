import type { Renderer } from '../../kinds/features'
import { filesetsOf } from './reading'

export const RENDERERS: Record<string, Renderer> = {
  /** every folder whose logs are shown, in either spelling of the spec */
  'log-folders': {
    Show: ({ object }) => {
      const found = filesetsOf(object)
      return found.length === 0 ? <>-</> : <>{found.map((each) => <div key={each} className="break">{each}</div>)}</>
    },
  },
}
