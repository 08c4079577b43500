import { formOf } from '../../forms/bundled'
import type { FormPart } from '../../kinds/features'
import { boardsOf, jobOf, withBoard } from './board'
import { hasBoardBeside } from './reading'

export const FORMS: Record<string, FormPart> = {
  /** Asked for in the form of a job that knows no TensorBoard, and made beside it. */
  'job-tensorboard': {
    form: (form, said, page) => {
      const other = page.kinds.find((each) => each.job?.tensorboard !== undefined && !hasBoardBeside(each))
      return hasBoardBeside(said) ? withBoard(form, other && formOf(other.kind)) : form
    },
    finish: jobOf,
    beside: (value, said) => (hasBoardBeside(said) ? boardsOf(value, said) : []),
  },
}
