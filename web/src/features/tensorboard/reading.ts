/** What the pages read from a TensorBoard. Pure. */
import { field, type KubeObject } from '../../kube/types'

interface LogDirectory {
  pvc?: { name: string; subPath?: string[] }[]
  s3?: { uri?: string }
}

/** `t9k://pvc/NAME/FOLDER` for every folder whose logs are shown, in either spelling of the spec. */
export function filesetsOf(board: KubeObject): string[] {
  const written = (field(board, 'spec.trainingLogFilesets') ?? []) as string[]
  const directory = field(board, 'spec.logDir') as LogDirectory | undefined
  const claims = (directory?.pvc ?? []).flatMap(({ name, subPath = [] }) => (subPath.length === 0 ? [`t9k://pvc/${name}/`] : subPath.map((path) => `t9k://pvc/${name}/${path}`)))
  return [...written, ...claims, ...(directory?.s3?.uri ? [directory.s3.uri] : [])]
}
