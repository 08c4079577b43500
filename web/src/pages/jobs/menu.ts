/** 创建 Job: what can be created with a form, in the words of the documents. */
import type { Text } from '../../i18n/words'
import { KINDS, type Kind } from '../../kube'
import { words } from './words'

export const MENU: readonly { kind: Kind; label: Text }[] = [
  { kind: KINDS.PyTorchTrainingJob, label: words.pytorch },
  { kind: KINDS.TensorFlowTrainingJob, label: words.tensorflow },
  { kind: KINDS.PyTorchJob, label: words.kubeflowPytorch },
  { kind: KINDS.TFJob, label: words.kubeflowTf },
]
