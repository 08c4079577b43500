"""What the attack takes place in: four namespaces, people with their rights, and canaries that nobody else may see.

A canary is an object, or a label of one, with a value that occurs nowhere else. Whoever is shown the value saw the
object, by whatever way; whoever changed the object was there.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.attack.fuzz.people import ADMIN, ANONYMOUS, EVERY_NAMESPACE, PEOPLE
from tests.attack.fuzz.process import Server
from tests.attack.fuzz.wire import Answer, Connection

BOUND_S = 30.0  # of any request. On a machine where ten others work, a healthy server takes a second or two
SETTLE_SECONDS = 30.0
CLEAR_SECONDS = 120.0  # until ten thousand pods that somebody asked for are gone again
WORN_SECONDS = 10.0  # a server on which that took so long is not taken for the next episode
HEALTH_SECONDS = 1.0
RBAC = "rbac.authorization.k8s.io"
LABEL = "fuzz/canary"
CANARY = re.compile(rb"canary[0-9a-f]{18}|Y2FuYXJ5[0-9A-Za-z]{24}")
# plural -> (path of the group, how an object carries the value)
CANARIES: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "configmaps": ("/api/v1", lambda value: {"kind": "ConfigMap", "apiVersion": "v1", "data": {"it": value}}),
    "secrets": ("/api/v1", lambda value: {"kind": "Secret", "apiVersion": "v1", "stringData": {"it": value}}),
    "podtemplates": (
        "/api/v1",
        lambda value: {
            "kind": "PodTemplate",
            "apiVersion": "v1",
            "template": {
                "metadata": {"annotations": {"it": value}},
                "spec": {"containers": [{"name": "x", "image": "x"}]},
            },
        },
    ),
    "leases": (
        "/apis/coordination.k8s.io/v1",
        lambda value: {
            "kind": "Lease",
            "apiVersion": "coordination.k8s.io/v1",
            "spec": {"holderIdentity": value},
        },
    ),
    "quotaprofiles": (
        "/apis/tensorstack.dev/v1beta1",
        lambda value: {
            "kind": "QuotaProfile",
            "apiVersion": "tensorstack.dev/v1beta1",
            "metadata": {"annotations": {"it": value}},
            "spec": {"hard": {"pods": "1"}},
        },
    ),
}  # fmt: skip
METADATA = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
COPIES = 3  # of each in each namespace: a list of them has pages
# What people may fill a namespace with; all of it goes before the next episode.
LITTER = (
    "/apis/kubeflow.org/v1 pytorchjobs", "/apis/kubeflow.org/v1 tfjobs",
    "/apis/batch.tensorstack.dev/v1beta1 pytorchtrainingjobs",
    "/apis/batch.tensorstack.dev/v1beta1 tensorflowtrainingjobs", "/apis/tensorstack.dev/v1beta1 notebooks",
    "/apis/tensorstack.dev/v1beta1 tensorboards", "/apis/tensorstack.dev/v1beta1 projects",
    "/apis/apps/v1 statefulsets", "/apis/apps/v1 deployments", "/apis/apps/v1 daemonsets", "/apis/apps/v1 replicasets",
    "/apis/batch/v1 jobs", "/api/v1 replicationcontrollers", "/api/v1 pods", "/api/v1 services",
    "/api/v1 resourcequotas", "/api/v1 limitranges", "/api/v1 persistentvolumeclaims", "/api/v1 configmaps",
    "/api/v1 secrets", "/api/v1 podtemplates", "/api/v1 events", "/apis/coordination.k8s.io/v1 leases",
    "/apis/tensorstack.dev/v1beta1 quotaprofiles", f"/apis/{RBAC}/v1 rolebindings", f"/apis/{RBAC}/v1 roles",
)  # fmt: skip
MADE_BY_OTHERS = ("pods", "replicasets", "jobs")  # by controllers, from what people made
# What no attack may add to, take from or change; of namespaces c and d all of these.
FROZEN = ("configmaps", "secrets", "podtemplates", "pods", "services", "serviceaccounts", "leases", "quotaprofiles",
          "deployments", "statefulsets", "jobs", "roles", "rolebindings")  # fmt: skip
CLUSTER_WIDE = ("namespaces", "clusterroles", "clusterrolebindings", "customresourcedefinitions", "storageclasses",
                "priorityclasses", "mutatingwebhookconfigurations", "validatingwebhookconfigurations",
                "validatingadmissionpolicies", "certificatesigningrequests")  # fmt: skip
GROUPS = {
    "deployments": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "jobs": "/apis/batch/v1",
    "leases": "/apis/coordination.k8s.io/v1", "quotaprofiles": "/apis/tensorstack.dev/v1beta1",
    "storageclasses": "/apis/storage.k8s.io/v1", "priorityclasses": "/apis/scheduling.k8s.io/v1",
    "customresourcedefinitions": "/apis/apiextensions.k8s.io/v1",
    "mutatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
    "validatingwebhookconfigurations": "/apis/admissionregistration.k8s.io/v1",
    "validatingadmissionpolicies": "/apis/admissionregistration.k8s.io/v1",
    "certificatesigningrequests": "/apis/certificates.k8s.io/v1",
    **dict.fromkeys(("roles", "rolebindings", "clusterroles", "clusterrolebindings"), f"/apis/{RBAC}/v1"),
}  # fmt: skip

Place = tuple[str, str, str]  # namespace, plural, name


class Unwell(Exception):
    """The admin was not served; the text says what was asked and what came."""


@dataclass(slots=True)
class World:
    server: Server
    seed: int
    values: dict[bytes, Place] = field(default_factory=dict)  # what a canary says -> where it is
    people: dict[str, Connection] = field(default_factory=dict)
    untouched: dict[Place, str] = field(default_factory=dict)  # the canaries as they were made
    is_worn: bool = False

    # -- making it

    def prepare(self, before: Iterable[str] = LITTER) -> None:
        """Everything in its place, whatever the last episode left, whose paths are `before`. Raises Unwell."""
        self._clear(before)
        for namespace in EVERY_NAMESPACE:
            self._make_namespace(namespace)
        for person in PEOPLE.values():
            if person.home:
                self._make_person(person.name)
        now = self.canaries() if self.untouched else {}
        for namespace in EVERY_NAMESPACE:
            self._make_canaries(namespace, now)
        self.untouched = self.canaries()
        for connection in self.people.values():
            connection.close()
        self.people = {ADMIN: self.server.admin, ANONYMOUS: self.server.connect()}
        for person in PEOPLE.values():
            if person.home:
                self.people[person.name] = self.server.connect(self._token(person.name))

    def reconnect(self) -> None:
        """After a restart: the same tokens at another port."""
        tokens = {name: connection.token for name, connection in self.people.items()}
        self.people = {name: self.server.connect(token) for name, token in tokens.items()}
        self.people[ADMIN] = self.server.admin

    def _clear(self, before: Iterable[str]) -> None:
        """Everything that people made goes. That may take its time; others are served meanwhile."""
        begun = time.monotonic()
        with ThreadPoolExecutor(1) as pool:
            clearing = pool.submit(self._delete_all, "\n".join(before))
            while not clearing.done():
                with contextlib.suppress(TimeoutError):
                    clearing.result(HEALTH_SECONDS)
                self._ask("GET", "/readyz")
                if time.monotonic() - begun > CLEAR_SECONDS:
                    raise Unwell(f"what people made is not gone {CLEAR_SECONDS:.0f} s after it was deleted")
            clearing.result()
        self.is_worn = time.monotonic() - begun > WORN_SECONDS

    def _delete_all(self, asked: str) -> None:
        connection = self.server.another_admin()
        options = json.dumps({"gracePeriodSeconds": 0, "propagationPolicy": "Background"}).encode()
        headers = {"content-type": "application/json"}
        for namespace in ("a", "b"):
            for line in LITTER:
                group, plural = line.split()
                if plural in asked or plural in MADE_BY_OTHERS:
                    path = f"{group}/namespaces/{namespace}/{plural}"
                    answer = connection.send("DELETE", path, options, headers, bound_s=CLEAR_SECONDS)
                    if answer.status not in (200, 404, 405):
                        what = answer.problem or f"{answer.status} {answer.body[:300].decode(errors='replace')}"
                        raise Unwell(f"the admin's DELETE {path}: {what}")
                    self._release(connection, path, answer)
        connection.close()

    def _release(self, connection: Connection, path: str, deleted: Answer) -> None:
        """What has a finalizer stays although it was deleted: a binding of the last episode would still give rights."""
        patch = json.dumps({"metadata": {"finalizers": None}}).encode()
        headers = {"content-type": "application/merge-patch+json"}
        for obj in (one for document in deleted.documents for one in document.get("items") or ()):
            if obj["metadata"].get("finalizers"):
                connection.send("PATCH", f"{path}/{obj['metadata']['name']}", patch, headers, bound_s=CLEAR_SECONDS)

    def _make_namespace(self, name: str) -> None:
        ends = time.monotonic() + SETTLE_SECONDS
        labels = {LABEL: self._value(name, "namespaces", name)}
        while True:
            found = self._ask("GET", f"/api/v1/namespaces/{name}", missing=True)
            if found is None:
                wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
                self._ask("POST", "/api/v1/namespaces", wanted)
            elif found["metadata"].get("deletionTimestamp"):
                self._ask("PUT", f"/api/v1/namespaces/{name}/finalize", _without_finalizers(found), missing=True)
            else:
                break
            if time.monotonic() > ends:
                raise Unwell(f"namespace {name} does not go: {json.dumps(found)[:500]}")
            time.sleep(0.05)
        merged = {"metadata": {"labels": labels, "finalizers": None}}
        self._ask("PATCH", f"/api/v1/namespaces/{name}", merged, kind="application/merge-patch+json")
        for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
            while self._ask("GET", f"/api/v1/namespaces/{name}/{path}", missing=True) is None:
                if time.monotonic() > ends:
                    raise Unwell(f"nobody made {path} in namespace {name}")
                time.sleep(0.05)

    def _make_person(self, name: str) -> None:
        person = PEOPLE[name]
        meta = {"name": name, "namespace": person.home}
        self._apply("/api/v1", "serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})
        role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": meta, "rules": list(person.rules)}
        self._apply(f"/apis/{RBAC}/v1", "roles", role)
        binding = {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": meta,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": person.home}],
        }
        self._apply(f"/apis/{RBAC}/v1", "rolebindings", binding)

    def _token(self, name: str) -> str:
        home = PEOPLE[name].home
        asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        answer = self._ask("POST", f"/api/v1/namespaces/{home}/serviceaccounts/{name}/token", asked)
        assert answer is not None
        return str(answer["status"]["token"])

    def _make_canaries(self, namespace: str, now: dict[Place, str]) -> None:
        for plural, (group, make) in CANARIES.items():
            for copy in range(COPIES):
                name = f"canary-{namespace}{copy}"
                place = (namespace, plural, name)
                if place in now and now[place] == self.untouched.get(place):
                    continue
                obj = make(self._value(namespace, plural, name))
                obj["metadata"] = {
                    **obj.get("metadata", {}),
                    "name": name,
                    "namespace": namespace,
                    "labels": {LABEL: "yes"},
                }
                self._apply(group, plural, obj)
        if namespace == "c":
            for plural, kind in (("configmaps", "ConfigMap"), ("secrets", "Secret")):
                meta = {"name": "shared", "namespace": "c"}
                self._apply("/api/v1", plural, {"apiVersion": "v1", "kind": kind, "metadata": meta})

    def _value(self, namespace: str, plural: str, name: str) -> str:
        place = (namespace, plural, name)
        value = "canary" + hashlib.sha256(f"{self.seed} {place}".encode()).hexdigest()[:18]
        self.values[value.encode()] = self.values[base64.b64encode(value.encode())] = place
        return value

    def _apply(self, group: str, plural: str, obj: dict[str, Any]) -> None:
        meta = obj["metadata"]
        path = f"{group}/namespaces/{meta['namespace']}/{plural}/{meta['name']}?fieldManager=fuzz&force=true"
        self._ask("PATCH", path, obj, kind="application/apply-patch+yaml")

    # -- looking at it

    def leaked(self, body: bytes) -> set[Place]:
        """Whose canaries these bytes tell."""
        return {self.values[found] for found in CANARY.findall(body) if found in self.values}

    def canaries(self) -> dict[Place, str]:
        """Each canary as it stands now; one that is gone is not in there."""
        found: dict[Place, str] = {}
        for plural in CANARIES:
            found |= self._versions(plural, f"?labelSelector={LABEL.replace('/', '%2F')}%3Dyes")
        return found | self._versions("namespaces")

    def frozen(self) -> dict[Place, str]:
        """What must be now as it was: all of c and d, and what belongs to no namespace."""
        found: dict[Place, str] = {}
        for plural in FROZEN:
            versions = self._versions(plural)
            found |= {place: version for place, version in versions.items() if place[0] in ("c", "d")}
        for plural in CLUSTER_WIDE:
            found |= self._versions(plural)
        return found

    def _versions(self, plural: str, query: str = "") -> dict[Place, str]:
        found = {}
        for obj in (self._ask("GET", f"{GROUPS.get(plural, '/api/v1')}/{plural}{query}", accept=METADATA) or {})[
            "items"
        ]:
            meta = obj["metadata"]
            namespace = meta.get("namespace") or (meta["name"] if plural == "namespaces" else "")
            told = [meta["uid"], meta["resourceVersion"]]
            if plural == "namespaces":  # the controller of projects may come by any time
                told = [meta["uid"], meta.get("deletionTimestamp"), sorted((meta.get("labels") or {}).items())]
            found[(namespace, plural, meta["name"])] = str(told)
        return found

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        missing: bool = False,
        kind: str = "application/json",
        accept: str = "application/json",
    ) -> dict[str, Any] | None:
        """The admin's answer; None for 404 and 405 with `missing`. Raises Unwell."""
        data = None if body is None else json.dumps(body).encode()
        answer = self.server.ask(method, path, data, bound_s=BOUND_S, content_type=kind, accept=accept)
        if 200 <= answer.status < 300:
            found: dict[str, Any] = {} if answer.body == b"ok" else json.loads(answer.body)
            return found
        if missing and answer.status in (404, 405, 409):
            return None
        what = answer.problem or f"{answer.status} {answer.body[:500].decode(errors='replace')}"
        raise Unwell(
            f"the admin's {method} {path}: {what}{' (' + self.server.ended + ')' if self.server.ended else ''}"
        )


def _without_finalizers(namespace: dict[str, Any]) -> dict[str, Any]:
    return {**namespace, "spec": {"finalizers": []}, "metadata": {**namespace["metadata"], "finalizers": []}}
