/** The project (namespace) people work in: part of the address, and remembered for the next visit. */
import { useEffect, useMemo } from 'react'
import { useParams } from 'react-router-dom'
import { DESCRIPTIONS } from '../kinds/description'
import { KINDS, KubeError, platformKind, useEachList, useList } from '../kube'

const KEY = 'danlu.project'
const WORKSPACES = DESCRIPTIONS.filter((each) => each.workspace).map((each) => ({ kind: platformKind(each.kind) }))
const SYSTEM = /^(kube-|t9k-system$|danlu-system$)/

export const rememberedProject = (): string => localStorage.getItem(KEY) ?? 'default'

/** The namespace of the address. Only for pages below /build/:namespace. */
export function useNamespace(): string {
  const { namespace = 'default' } = useParams()
  useEffect(() => localStorage.setItem(KEY, namespace), [namespace])
  return namespace
}

export interface ProjectChoice {
  name: string
  /** An object stands for it, not only a namespace. */
  project: boolean
}

/** Projects first, then other namespaces; `forbidden` when the person may list neither. */
export function useProjects(): { choices: ProjectChoice[]; forbidden: boolean; loading: boolean } {
  const projects = useEachList(WORKSPACES)
  const namespaces = useList(KINDS.Namespace)
  return useMemo(() => {
    const named = new Set(projects.flatMap(({ items }) => items).map((each) => each.metadata.namespace ?? each.metadata.name))
    const others = namespaces.items.map((each) => each.metadata.name).filter((name) => !named.has(name) && !SYSTEM.test(name))
    const refused = (error: Error | undefined): boolean => error instanceof KubeError && (error.forbidden || error.notFound)
    return {
      choices: [
        ...[...named].sort().map((name) => ({ name, project: true })),
        ...others.sort().map((name) => ({ name, project: false })),
      ],
      forbidden: projects.every((each) => refused(each.error)) && refused(namespaces.error),
      loading: projects.every((each) => each.loading) && namespaces.loading,
    }
  }, [projects, namespaces])
}
