"""Every pod runs as a service account that exists, and finds its token where programs look for it."""

from __future__ import annotations

import asyncio
import random
import uuid
from typing import TYPE_CHECKING, Any

from danlu.embedded.apiserver.admission import CREATE, Attributes, Handler
from danlu.embedded.apiserver.mirror import Mirror
from danlu.meta import wellknown
from danlu.meta.clock import now_rfc3339
from danlu.meta.kind import Object

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

DEFAULT = "default"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
VOLUME_PREFIX = "kube-api-access-"
TOKEN_SECONDS = 3607  # as upstream: asks the token endpoint for a token that outlives its nominal end
_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_ENFORCED = "kubernetes.io/enforce-mountable-secrets"
_MIRROR_POD = "kubernetes.io/config.mirror"
_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})


def _whole(obj: Object) -> Object:
    return obj


def _retrieve(future: asyncio.Future[Any]) -> None:
    """A failed write of the default account shows in the pod's own write, which comes right behind it."""
    if not future.cancelled():
        future.exception()


class ServiceAccount(Handler):
    resources = frozenset({"pods"})

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts = Mirror(store, wellknown.SERVICE_ACCOUNT.resource, _whole)
        self._namespaces = Mirror(store, wellknown.NAMESPACE.resource, lambda _: True)

    def mutate(self, a: Attributes) -> None:
        if a.operation != CREATE or a.subresource or a.obj is None:
            return
        pod = a.obj
        if _MIRROR_POD in (pod["metadata"].get("annotations") or {}):
            return
        spec = pod.setdefault("spec", {})
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = self._find(a, name)
        if _automount(account, spec):
            _mount_token(spec)
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": ref.get("name", "")} for ref in account["imagePullSecrets"]]

    def validate(self, a: Attributes) -> None:
        if a.obj is None or a.subresource or a.operation != CREATE:
            return
        spec = a.obj.get("spec") or {}
        name = spec.get("serviceAccountName") or ""
        if _MIRROR_POD in (a.obj["metadata"].get("annotations") or {}):
            if name:
                raise a.forbidden("a mirror pod may not reference service accounts")
            return
        if not name:
            pod_name = a.obj["metadata"].get("name", "")
            raise a.forbidden(f"no service account specified for pod {a.namespace}/{pod_name}")
        account = self._find(a, name)
        annotations = account["metadata"].get("annotations")
        if annotations and annotations.get(_ENFORCED) in _TRUE:
            _limit_secrets(a, account, spec)

    def _find(self, a: Attributes, name: str) -> Object:
        account = self._accounts.get(a.namespace, name)
        if account is not None:
            return account
        if name == DEFAULT and self._namespaces.get("", a.namespace):
            return self._make_default(a)
        raise a.forbidden(f'error looking up service account {a.namespace}/{name}: serviceaccount "{name}" not found')

    def _make_default(self, a: Attributes) -> Object:
        """A namespace may be seconds old and its controller not there yet. Upstream waits; here nothing may wait
        between admission and the store, so the account is written first, in front of the pod.
        """
        account: Object = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": DEFAULT,
                "namespace": a.namespace,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": now_rfc3339(),
            },
        }
        if not a.dry_run:
            self._store.put(wellknown.SERVICE_ACCOUNT.resource, account).add_done_callback(_retrieve)
        return account


def _automount(account: Object, spec: Object) -> bool:
    for holder in (spec, account):
        stated = holder.get("automountServiceAccountToken")
        if stated is not None:
            return bool(stated)
    return True


def _mount_token(spec: Object) -> None:
    volumes = spec.get("volumes") or []
    known = next((v["name"] for v in volumes if str(v.get("name", "")).startswith(VOLUME_PREFIX)), None)
    name = known or VOLUME_PREFIX + "".join(random.choices(_SUFFIX_LETTERS, k=5))
    needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if any(mount.get("mountPath") == MOUNT_PATH for mount in mounts):
            continue
        container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}]
        needed = True
    if needed and not known:
        spec["volumes"] = [*volumes, {"name": name, "projected": token_volume()}]


def token_volume() -> Object:
    field = {"apiVersion": "v1", "fieldPath": "metadata.namespace"}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": field}]}},
        ],
        "defaultMode": 0o644,
    }


def _limit_secrets(a: Attributes, account: Object, spec: Object) -> None:
    allowed = {ref.get("name") for ref in account.get("secrets") or ()}
    who = f"is not allowed because service account {account['metadata']['name']} does not reference that"
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName")
        if secret is not None and secret not in allowed:
            raise a.forbidden(f'volume with secret.secretName="{secret}" {who} secret')
    for title, field in (("init container", "initContainers"), ("container", "containers")):
        for container in spec.get(field) or ():
            for env in container.get("env") or ():
                secret = ((env.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
                if secret is not None and secret not in allowed:
                    raise a.forbidden(
                        f"{title} {container['name']} with envVar {env['name']} referencing "
                        f'secret.secretName="{secret}" {who} secret'
                    )
            for source in container.get("envFrom") or ():
                secret = (source.get("secretRef") or {}).get("name")
                if secret is not None and secret not in allowed:
                    raise a.forbidden(
                        f"{title} {container['name']} with envFrom referencing "
                        f'secret.secretName="{secret}" {who} secret'
                    )
    pulls = {ref.get("name") for ref in account.get("imagePullSecrets") or ()}
    for index, ref in enumerate(spec.get("imagePullSecrets") or ()):
        if ref.get("name") not in pulls:
            raise a.forbidden(f'imagePullSecrets[{index}].name="{ref.get("name")}" {who} imagePullSecret')
