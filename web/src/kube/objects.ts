/** Reading and writing single objects. */
import { request, requestJson } from './http'
import type { Kind } from './kinds'
import { collectionPath, objectPath, withQuery, type Selection } from './paths'
import type { KubeList, KubeObject } from './types'

const DRY_RUN = { dryRun: 'All' }
const STRICT = { fieldValidation: 'Strict' }

interface Writing {
  dryRun?: boolean
  signal?: AbortSignal
}

const query = (writing: Writing): Record<string, string> => ({ ...STRICT, ...(writing.dryRun ? DRY_RUN : {}) })

export const getObject = (kind: Kind, namespace: string | undefined, name: string, signal?: AbortSignal): Promise<KubeObject> =>
  requestJson(objectPath(kind, namespace, name), { signal })

export async function listObjects(kind: Kind, selection: Selection = {}, signal?: AbortSignal): Promise<KubeObject[]> {
  const path = withQuery(collectionPath(kind, selection.namespace), {
    labelSelector: selection.labels,
    fieldSelector: selection.fields,
  })
  const list = await requestJson<KubeList>(path, { signal })
  return (list.items ?? []).map((item) => ({ ...item, apiVersion: kind.apiVersion, kind: kind.kind }))
}

export const createObject = (kind: Kind, namespace: string | undefined, object: KubeObject, writing: Writing = {}): Promise<KubeObject> =>
  requestJson(withQuery(collectionPath(kind, namespace), query(writing)), {
    method: 'POST',
    body: object,
    ...(writing.signal ? { signal: writing.signal } : {}),
  })

export const replaceObject = (kind: Kind, object: KubeObject, writing: Writing = {}): Promise<KubeObject> =>
  requestJson(withQuery(objectPath(kind, object.metadata.namespace, object.metadata.name), query(writing)), {
    method: 'PUT',
    body: object,
    ...(writing.signal ? { signal: writing.signal } : {}),
  })

/** Merge patch: `null` removes a field, a list is replaced as a whole. */
export const patchObject = (kind: Kind, namespace: string | undefined, name: string, patch: unknown, subresource?: string): Promise<KubeObject> =>
  requestJson(objectPath(kind, namespace, name, subresource), {
    method: 'PATCH',
    body: patch,
    contentType: 'application/merge-patch+json',
  })

export async function deleteObject(kind: Kind, namespace: string | undefined, name: string, uid?: string): Promise<void> {
  // The uid guards against deleting a namesake that was made after the page was drawn.
  await request(objectPath(kind, namespace, name), {
    method: 'DELETE',
    body: { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: 'Background', ...(uid ? { preconditions: { uid } } : {}) },
  })
}
