/** Kubeflow's jobs know no TensorBoard: the form asks for one all the same, and it is made beside the job. Pure. */
import type { FormSpec, SectionSpec } from '../../forms/spec'
import { read, type Value } from '../../forms/value'
import type { Description } from '../../kinds/description'
import { podSelector } from '../../kinds/podSelector'
import { platformKind } from '../../kube/kinds'
import type { KubeObject } from '../../kube/types'

const THERE = 'spec.tensorboardSpec' // where TensorStack's jobs have it
const HERE = 'beside.tensorboard' // in the form's value only; never sent

/** The form, with the TensorBoard section of another job's form. */
export function withBoard(form: FormSpec, other: FormSpec | undefined): FormSpec {
  const section = other?.sections.find((each) => each.at === THERE)
  if (!section) return form
  const moved: SectionSpec = {
    ...section,
    at: HERE,
    fields: section.fields.map(({ help: _, ...field }) => ({ ...field, path: field.path.replace(THERE, HERE), required: field.required || field.widget === 'claim' })),
  }
  return { ...form, sections: [...form.sections, moved] }
}

export function jobOf(value: Value): Value {
  const { beside: _, ...job } = value
  return job
}

/** Named after the job, with the label by which its page finds it. */
export function boardsOf(value: Value, job: Description): KubeObject[] {
  const spec = read(value, HERE) as Value | undefined
  const name = read(value, 'metadata.name')
  if (!spec || typeof name !== 'string') return []
  const [key = '', label = ''] = (podSelector(job, name) ?? '').split('=')
  return [{ apiVersion: platformKind('TensorBoard').apiVersion, kind: 'TensorBoard', metadata: { name, labels: { [key]: label } }, spec } as KubeObject]
}
