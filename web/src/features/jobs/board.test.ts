import { describe, expect, it } from 'vitest'
import { formOf } from '../../forms/bundled'
import { missing } from '../../forms/value'
import { describe as described } from '../../kinds/description'
import { boardsOf, jobOf, withBoard } from './board'

const form = withBoard(formOf('PyTorchJob')!, formOf('PyTorchTrainingJob'))
const spec = { image: 'tensorflow/tensorflow:2.14.0', logDir: { pvc: [{ name: 'mnist', subPath: ['log'] }] } }
const value = { apiVersion: 'kubeflow.org/v1', kind: 'PyTorchJob', metadata: { name: 'mnist' }, spec: {}, beside: { tensorboard: spec } }

describe('a TensorBoard beside a Kubeflow job', () => {
  it('is asked for by the form', () => {
    expect(form.sections.at(-1)?.at).toBe('beside.tensorboard')
    expect(missing(form, { ...value, beside: { tensorboard: { image: 'a' } } })).toContain('beside.tensorboard.logDir.pvc.0.name')
  })
  it('is an object of its own, and no part of the job', () => {
    expect(boardsOf(value, described('PyTorchJob')!)).toEqual([
      { apiVersion: 'tensorstack.dev/v1beta1', kind: 'TensorBoard', metadata: { name: 'mnist', labels: { 'training.kubeflow.org/job-name': 'mnist' } }, spec },
    ])
    expect(jobOf(value)).not.toHaveProperty('beside')
  })
  it('is not made where nobody asked', () => {
    expect(boardsOf(jobOf(value), described('PyTorchJob')!)).toEqual([])
  })
})
