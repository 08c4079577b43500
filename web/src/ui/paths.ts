/** Which page shows an object. */
import { describe, pageOf } from '../kinds/description'
import type { KubeObject } from '../kube'

/** Kubernetes' own; those of the platform's kinds stand in their folders. */
const PAGES: Record<string, string> = {
  Pod: 'pods',
  PersistentVolumeClaim: 'volumes',
  Secret: 'secrets',
  ConfigMap: 'configmaps',
  Node: 'nodes',
}

/** The address of an object's page, or undefined where it has none. `namespace` is the project we are in. */
export function pathOf(object: Pick<KubeObject, 'kind' | 'metadata'>, namespace: string): string | undefined {
  const { kind = '', metadata } = object
  const home = `/build/${metadata.namespace ?? namespace}`
  const page = pageOf(kind)
  if (page?.opens) return `${home}/${page.opens}`
  if (page) {
    const project = page.menu.section === 'cluster' ? `/build/${namespace}` : home
    return [project, page.key, ...(page.several ? [describe(kind)!.plural] : []), metadata.name].join('/')
  }
  if (kind === 'Namespace') return `/build/${metadata.name}/overview`
  if (kind === 'Node') return `/build/${namespace}/${PAGES[kind]}/${metadata.name}`
  return PAGES[kind] ? `${home}/${PAGES[kind]}/${metadata.name}` : undefined
}
