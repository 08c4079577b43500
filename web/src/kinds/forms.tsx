/** Parts of create pages beyond form.yaml; they are in src/features. */
import { createObject, KINDS, KubeError, type KubeObject, type Kind } from '../kube'
import { table, type FormPart } from './features'

/** It lies in the namespace of its name, which is made first where it is missing. */
async function sendHome(object: KubeObject, kind: Kind): Promise<KubeObject> {
  const { name } = object.metadata
  try {
    await createObject(KINDS.Namespace, undefined, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  } catch (error) {
    if (!(error instanceof KubeError && error.reason === 'AlreadyExists')) throw error
  }
  return createObject(kind, name, { ...object, metadata: { ...object.metadata, namespace: name } })
}

const FORMS: Readonly<Record<string, FormPart>> = {
  'own-namespace': { send: sendHome, leadsTo: (object) => `/build/${object.metadata.name}/overview` },
}

const files = import.meta.glob<Record<string, FormPart>>('../features/*/forms.tsx', { eager: true, import: 'FORMS' })

export const formPartNamed = table<FormPart>('part of a form', FORMS, ...Object.values(files))
