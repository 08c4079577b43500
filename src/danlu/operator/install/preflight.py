"""What has to be right before anything is changed; each finding says what, why, and what mends it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass

import orjson

from danlu import errors
from danlu.client.client import Client
from danlu.kinds._operators.known import TRAINING_OPERATOR
from danlu.kinds._training import gang
from danlu.meta.kind import Kind, Object
from danlu.meta.wellknown import (
    CUSTOM_RESOURCE_DEFINITION,
    DAEMON_SET,
    DEPLOYMENT,
    NAMESPACE,
    NODE,
    SELF_SUBJECT_ACCESS_REVIEW,
    SELF_SUBJECT_REVIEW,
    STORAGE_CLASS,
)
from danlu.operator.install.manifests import InstallPart
from danlu.operator.install.options import InstallOptions
from danlu.operator.install.plan import MANAGED_BY, OURS, is_served, kind_of, read

OLDEST = (1, 29)
EMBEDDED = "+danlu."  # in the version of `danlu up`
PART_OF = "app.kubernetes.io/part-of"
DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
HELM_RELEASE, HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
GPU_LABEL = "nvidia.com/gpu.present=true"
VERBS = ("get", "list", "create", "patch")
MOST_LISTED = 6
KUEUE = "localqueues.kueue.x-k8s.io"


@dataclass(frozen=True, slots=True)
class CheckFinding:
    fatal: bool
    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}\n    → {self.remedy}"


@dataclass(frozen=True, slots=True)
class CheckAnswer:
    """What the checks are about."""

    client: Client
    options: InstallOptions
    parts: Sequence[InstallPart]

    def part(self, component: str) -> list[Object]:
        return [part.object for part in self.parts if part.component == component]


async def findings(asked: CheckAnswer) -> list[CheckFinding]:
    """All of them, the fatal ones first. A server that cannot be asked at all raises."""
    version = await _version(asked.client)
    found = [one async for one in about_version(asked, version)]
    missing = [one async for one in _about_rights(asked)]
    if missing:
        return [*found, *missing]  # the other checks would only fail for the same reason
    for check in CHECKS:
        found += [one async for one in check(asked)]
    return sorted(found, key=lambda one: not one.fatal)


async def _version(client: Client) -> Object:
    answer = await client.request("GET", "/version")
    found: Object = orjson.loads(answer.body) if isinstance(answer.body, bytes) else {}
    return found


async def about_version(asked: CheckAnswer, version: Object) -> AsyncIterator[CheckFinding]:
    text = str(version.get("gitVersion"))
    numbers = re.findall(r"\d+", text)[:2]
    if tuple(map(int, numbers)) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        yield CheckFinding(
            True, f"the cluster runs Kubernetes {text}; Danlu needs {wanted} or newer", "upgrade the cluster"
        )
    if EMBEDDED in text and asked.part("operator"):
        kind = asked.options.kinds[0].kind
        if await read(asked.client, CUSTOM_RESOURCE_DEFINITION, f"{kind.plural}.{kind.group}") is not None:
            yield CheckFinding(
                True,
                "this is `danlu up` on one machine: it looks after all kinds itself, and an operator would fight it",
                "name the kubeconfig of a cluster with --kubeconfig, or use what runs here as it is",
            )


async def _about_rights(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    needed = {(kind_of(part.object), part.object["metadata"].get("namespace")) for part in asked.parts}
    questions = [(kind, namespace, verb) for kind, namespace in needed for verb in VERBS]
    answers = await asyncio.gather(*(_may(asked.client, *question) for question in questions))
    lacking = sorted(
        {
            f"{verb} {kind.resource}" + (f" in {namespace}" if namespace else "")
            for (kind, namespace, verb), allowed in zip(questions, answers, strict=True)
            if not allowed
        }
    )
    if lacking:
        who = await _who(asked.client)
        yield CheckFinding(
            True,
            f"{who} may not {_listed(lacking)}",
            "let an administrator run this command, or let one grant it: "
            f"kubectl create clusterrolebinding danlu-installer --clusterrole=cluster-admin --user={who}",
        )


async def _may(client: Client, kind: Kind, namespace: str | None, verb: str) -> bool:
    about = {"group": kind.group, "resource": kind.plural, "verb": verb, "namespace": namespace or ""}
    question = {"spec": {"resourceAttributes": about}}
    answer = await client.create(SELF_SUBJECT_ACCESS_REVIEW, {"metadata": {}, **question})
    return bool((answer.get("status") or {}).get("allowed"))


async def _who(client: Client) -> str:
    try:
        answer = await client.create(SELF_SUBJECT_REVIEW, {"metadata": {}})
    except errors.ApiError:
        return "the account of this kubeconfig"
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username"))


async def _about_namespace(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    name = asked.options.namespace
    found = await read(asked.client, NAMESPACE, name) if asked.part("namespace") else None
    if found is not None and (found.get("status") or {}).get("phase") == "Terminating":
        yield CheckFinding(
            True, f"namespace {name} is being deleted", f"wait: kubectl wait --for=delete namespace/{name}"
        )


async def _about_definitions(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    """A definition that somebody else installed is not changed under their hands."""
    foreign = []
    for wanted in asked.part("crds"):
        found = await read(asked.client, CUSTOM_RESOURCE_DEFINITION, wanted["metadata"]["name"])
        if found is not None and _labels(found).get(PART_OF) != "danlu":
            foreign.append(found)
    if foreign and not asked.options.take_over:
        names = [one["metadata"]["name"] for one in foreign]
        kinds = ",".join(one["spec"]["names"]["kind"] for one in foreign)
        yield CheckFinding(
            True,
            f"these kinds were installed by somebody else: {_listed(names)}",
            f"leave them to it: danlu install --without-kinds {kinds}; or, when whoever installed them is gone for "
            "good, take them over with their objects: danlu install --take-over",
        )


async def _about_helm(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    for obj in asked.part("operator"):
        if kind_of(obj) != DEPLOYMENT:
            continue
        found = await read(asked.client, DEPLOYMENT, obj["metadata"]["name"], obj["metadata"]["namespace"])
        if found is not None and _labels(found).get(MANAGED_BY) == "Helm":
            notes = found["metadata"].get("annotations") or {}
            release, namespace = notes.get(HELM_RELEASE, "RELEASE"), notes.get(HELM_NAMESPACE, "NAMESPACE")
            yield CheckFinding(
                True,
                f"Danlu is installed here as the Helm release {release}",
                f"upgrade it with Helm: helm upgrade {release} deploy/chart -n {namespace}",
            )


async def _about_kubeflow(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    kinds = [kind.kind.kind for kind in asked.options.kinds if kind.kind.group == "kubeflow.org"]
    if not kinds or not asked.part("operator"):
        return
    async for obj in _running(asked.client, DEPLOYMENT, TRAINING_OPERATOR.images):
        place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        yield CheckFinding(
            True,
            f"Kubeflow's training operator runs here (Deployment {place}); two operators would fight over "
            f"{' and '.join(kinds)} objects",
            "leave those kinds to it: danlu install --without-kinds kubeflow; or stop it: "
            f"kubectl scale -n {obj['metadata']['namespace']} deployment/{obj['metadata']['name']} --replicas=0",
        )


async def _about_gang(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    chosen = asked.options.gang
    if chosen == "none" or not asked.part("operator"):
        return
    kind = gang.ENGINES[chosen].kind
    what = kind.resource if kind is not None else KUEUE
    if kind is not None:
        served = await is_served(asked.client, kind)
    else:
        served = await read(asked.client, CUSTOM_RESOURCE_DEFINITION, KUEUE) is not None
    if not served:
        more = " (kube-scheduler's own: feature gates GenericWorkload and GangScheduling)" if chosen == "kube" else ""
        yield CheckFinding(
            True,
            f"--gang {chosen}: this cluster has no {what}; jobs would wait for it for ever",
            f"install or switch on the engine{more}, or choose another: danlu install --gang none",
        )


async def _about_gpus(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    if asked.part("addons/nvidia"):
        async for obj in _running(asked.client, DAEMON_SET, ("k8s-device-plugin", "nvidia-device-plugin")):
            if _labels(obj).get(MANAGED_BY) != OURS:
                place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
                yield CheckFinding(
                    True,
                    f"NVIDIA's device plugin is here already (DaemonSet {place})",
                    "leave that add-on out: danlu install --addons none (or only dcgm)",
                )
    if asked.part("addons/dcgm") and not (await asked.client.list(NODE, labels=GPU_LABEL)).items:
        yield CheckFinding(
            False,
            f"no node has the label {GPU_LABEL}: dcgm-exporter will run nowhere",
            f"label the nodes that have GPUs: kubectl label node NODE {GPU_LABEL}",
        )


async def _about_storage(asked: CheckAnswer) -> AsyncIterator[CheckFinding]:
    if not asked.part("operator") or not await is_served(asked.client, STORAGE_CLASS):
        return
    classes = (await asked.client.list(STORAGE_CLASS)).items
    if any((one["metadata"].get("annotations") or {}).get(mark) == "true" for one in classes for mark in DEFAULT_CLASS):
        return
    name = classes[0]["metadata"]["name"] if classes else "NAME"
    mark = f'{{"metadata":{{"annotations":{{"{DEFAULT_CLASS[0]}":"true"}}}}}}'
    first = "" if classes else "install a provisioner, for instance local-path, and then: "
    yield CheckFinding(
        False,
        "no StorageClass is the default one: volume claims that name no class will wait for ever",
        f"{first}kubectl patch storageclass {name} -p '{mark}'",
    )


async def _running(client: Client, kind: Kind, images: Sequence[str]) -> AsyncIterator[Object]:
    """Workloads with such an image that have pods, or are about to."""
    for obj in (await client.list(kind)).items:
        spec = obj.get("spec") or {}
        containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
        if spec.get("replicas") != 0 and any(part in str(one.get("image")) for one in containers for part in images):
            yield obj


CHECKS: tuple[Callable[[CheckAnswer], AsyncIterator[CheckFinding]], ...] = (
    _about_namespace, _about_definitions, _about_helm, _about_kubeflow, _about_gang, _about_gpus, _about_storage,
)  # fmt: skip


def _labels(obj: Object) -> dict[str, str]:
    return obj["metadata"].get("labels") or {}


def _listed(names: Iterable[str]) -> str:
    found = list(names)
    more = f" and {len(found) - MOST_LISTED} more" if len(found) > MOST_LISTED else ""
    return ", ".join(found[:MOST_LISTED]) + more
