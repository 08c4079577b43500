/** Kinds the console has no page for: found by asking the server, so that YAML of any kind can be created. */
import { requestJson } from './http'
import { kindNamed, type Kind } from './kinds'
import { API } from './paths'

interface Resources {
  resources: { name: string; kind: string; namespaced: boolean }[]
}

const known = new Map<string, Promise<Resources>>()

/** undefined: the server serves no such kind. */
export async function findKind(apiVersion: string, kind: string): Promise<Kind | undefined> {
  const listed = kindNamed(kind, apiVersion)
  if (listed) return listed
  let resources = known.get(apiVersion)
  if (resources === undefined) {
    resources = requestJson<Resources>(`${API}/${apiVersion.includes('/') ? 'apis' : 'api'}/${apiVersion}`)
    known.set(apiVersion, resources)
    resources.catch(() => known.delete(apiVersion))
  }
  try {
    const found = (await resources).resources.find((each) => each.kind === kind && !each.name.includes('/'))
    return found && { kind, apiVersion, plural: found.name, namespaced: found.namespaced, words: { zh: kind, en: kind } }
  } catch {
    return undefined
  }
}
