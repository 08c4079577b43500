import { useNavigate } from 'react-router-dom'
import { formOf } from '../../forms/bundled'
import { CreatePage } from '../../forms/CreatePage'
import { useNamespace } from '../../frame/project'
import { useWords } from '../../i18n'
import { createObject, KINDS, KubeError, type KubeObject } from '../../kube'
import { words } from './words'

const form = formOf('Project')!

/** A project lies in the namespace of its name, which is made first where it is missing. */
async function send(project: KubeObject): Promise<KubeObject> {
  const { name } = project.metadata
  try {
    await createObject(KINDS.Namespace, undefined, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  } catch (error) {
    if (!(error instanceof KubeError && error.reason === 'AlreadyExists')) throw error
  }
  return createObject(KINDS.Project, name, { ...project, metadata: { ...project.metadata, namespace: name } })
}

export default function CreateProject() {
  const w = useWords(words)
  const namespace = useNamespace()
  const navigate = useNavigate()
  return (
    <CreatePage
      kind={KINDS.Project}
      namespace={namespace}
      form={form}
      title={w('create')}
      list={{ label: w('title'), to: `/build/${namespace}/projects` }}
      send={send}
      onCreated={(project) => navigate(`/build/${project.metadata.name}/overview`)}
    />
  )
}
