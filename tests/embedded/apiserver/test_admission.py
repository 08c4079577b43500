from __future__ import annotations

from typing import Any

import pytest

from danlu.embedded.apiserver.admission import Attributes, Chain, Handler, standard_chain
from danlu.embedded.apiserver.admission.default_tolerations import DefaultTolerations
from danlu.embedded.apiserver.admission.limit_ranger import LimitRanger
from danlu.embedded.apiserver.admission.namespace_lifecycle import NamespaceLifecycle
from danlu.embedded.apiserver.admission.priority import Priority
from danlu.embedded.apiserver.admission.pvc_resize import ClaimResize
from danlu.embedded.apiserver.admission.service_account import MOUNT_PATH, ServiceAccount
from danlu.embedded.apiserver.admission.storage_class import DefaultStorageClass
from danlu.embedded.apiserver.admission.storage_object_in_use import StorageObjectInUse
from danlu.embedded.apiserver.auth.rbac import Authorizer
from danlu.errors import Forbidden, NotFound
from danlu.meta import wellknown as k
from danlu.meta.kind import Object


async def test_the_chain_asks_only_those_concerned(world: Any) -> None:
    seen: list[str] = []

    class Pods(Handler):
        resources = frozenset({"pods"})

        def mutate(self, a: Attributes) -> None:
            seen.append("pods")

    class Everything(Handler):
        def mutate(self, a: Attributes) -> None:
            seen.append("mutate")

        def validate(self, a: Attributes) -> None:
            seen.append("validate")

    chain = Chain([Pods(), Everything()])
    write = world.write("CREATE", k.CONFIG_MAP, {"metadata": {"name": "x", "namespace": "default"}})
    chain.mutate(write)
    chain.validate(write)
    assert seen == ["mutate", "validate"]


async def test_a_refusal_names_the_prefix_until_there_is_a_name(world: Any, make_pod: Any) -> None:
    """As Kubernetes: mutating plugins run before the name is made up, validating ones after."""

    class No(Handler):
        def mutate(self, a: Attributes) -> None:
            if a.dry_run:
                raise a.forbidden("no")

        def validate(self, a: Attributes) -> None:
            raise a.forbidden("no")

    pod = make_pod("job-abcde")
    pod["metadata"]["generateName"] = "job-"
    with pytest.raises(Forbidden, match='pods "job-" is forbidden: no'):
        Chain([No()]).mutate(world.write("CREATE", k.POD, pod, dry_run=True))
    with pytest.raises(Forbidden, match='pods "job-abcde" is forbidden: no'):
        Chain([No()]).validate(world.write("CREATE", k.POD, pod))


async def test_namespaces_live_and_die(world: Any) -> None:
    plugin = NamespaceLifecycle(world.store)

    def config(namespace: str) -> Attributes:
        made: Attributes = world.write("CREATE", k.CONFIG_MAP, {"metadata": {"name": "x", "namespace": namespace}})
        return made

    with pytest.raises(NotFound) as missing:
        plugin.mutate(config("lab"))
    assert missing.value.message == 'namespaces "lab" not found'
    world.put(k.NAMESPACE, "lab", status={"phase": "Active"})
    plugin.mutate(config("lab"))
    world.put(k.NAMESPACE, "lab", status={"phase": "Terminating"})
    with pytest.raises(Forbidden) as refused:
        plugin.mutate(config("lab"))
    assert refused.value.message == (
        'configmaps "x" is forbidden: unable to create new content in namespace lab because it is being terminated'
    )
    assert refused.value.details["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace lab is being terminated",
            "field": "metadata.namespace",
        }
    ]
    old = {"metadata": {"name": "x", "namespace": "lab"}}
    plugin.mutate(world.write("UPDATE", k.CONFIG_MAP, old, old))
    plugin.mutate(world.write("DELETE", k.CONFIG_MAP, None, old))
    with pytest.raises(Forbidden, match='namespaces "default" is forbidden: this namespace may not be deleted'):
        plugin.validate(world.write("DELETE", k.NAMESPACE, None, {"metadata": {"name": "default"}}))
    plugin.validate(world.write("DELETE", k.NAMESPACE, None, {"metadata": {"name": "lab"}}))


async def test_service_account_and_token_volume(world: Any, make_pod: Any) -> None:
    plugin = ServiceAccount(world.store)
    world.put(k.NAMESPACE, "default")
    world.put(k.SERVICE_ACCOUNT, "default", "default", imagePullSecrets=[{"name": "pull"}])
    pod = make_pod()
    plugin.mutate(world.write("CREATE", k.POD, pod))
    plugin.validate(world.write("CREATE", k.POD, pod))
    spec = pod["spec"]
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    (volume,), (mount,) = spec["volumes"], spec["containers"][0]["volumeMounts"]
    assert volume["name"].startswith("kube-api-access-")
    assert len(volume["name"]) == len("kube-api-access-") + 5
    assert mount == {"name": volume["name"], "readOnly": True, "mountPath": MOUNT_PATH}
    assert [next(iter(source)) for source in volume["projected"]["sources"]] == [
        "serviceAccountToken", "configMap", "downwardAPI",
    ]  # fmt: skip

    quiet = make_pod(automountServiceAccountToken=False)
    plugin.mutate(world.write("CREATE", k.POD, quiet))
    assert "volumes" not in quiet["spec"]

    own = make_pod()
    own["spec"]["containers"][0]["volumeMounts"] = [{"name": "mine", "mountPath": MOUNT_PATH}]
    plugin.mutate(world.write("CREATE", k.POD, own))
    assert "volumes" not in own["spec"]

    with pytest.raises(Forbidden) as refused:
        plugin.mutate(world.write("CREATE", k.POD, make_pod(serviceAccountName="nobody")))
    assert refused.value.message == (
        'pods "p" is forbidden: error looking up service account default/nobody: serviceaccount "nobody" not found'
    )


async def test_a_young_namespace_gets_its_default_account_with_the_first_pod(world: Any, make_pod: Any) -> None:
    plugin = ServiceAccount(world.store)
    world.put(k.NAMESPACE, "young")
    plugin.mutate(world.write("CREATE", k.POD, make_pod("p", "young"), dry_run=True))
    assert world.store.latest("serviceaccounts", "young", "default") is None
    plugin.mutate(world.write("CREATE", k.POD, make_pod("p", "young")))
    account = world.store.latest("serviceaccounts", "young", "default")
    assert account is not None
    assert account.uid
    with pytest.raises(Forbidden):
        plugin.mutate(world.write("CREATE", k.POD, make_pod("p", "nowhere")))


async def test_limit_range_defaults(world: Any, make_pod: Any) -> None:
    plugin = LimitRanger(world.store)
    limits = [{"type": "Container", "default": {"cpu": "1", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"}}]
    world.put(k.LIMIT_RANGE, "defaults", "default", spec={"limits": limits})
    pod = make_pod(limits={"cpu": "2"})
    plugin.mutate(world.write("CREATE", k.POD, pod))
    assert pod["spec"]["containers"][0]["resources"] == {
        "limits": {"cpu": "2", "memory": "1Gi"},
        "requests": {"cpu": "100m"},
    }
    assert pod["metadata"]["annotations"] == {
        "kubernetes.io/limit-ranger": (
            "LimitRanger plugin set: cpu request for container c; memory limit for container c"
        )
    }


CPU = {"cpu": "500m"}


@pytest.mark.parametrize(
    ("type_", "bounds", "requests", "limits", "text"),
    [
        ("Container", {"max": {"cpu": "1"}}, {}, {"cpu": "2"}, "maximum cpu usage per Container is 1, but limit is 2"),
        ("Container", {"max": {"cpu": "1"}}, {}, {}, "maximum cpu usage per Container is 1.  No limit is specified"),
        ("Container", {"min": {"cpu": "1"}}, CPU, {}, "minimum cpu usage per Container is 1, but request is 500m"),
        ("Pod", {"min": {"memory": "1Gi"}}, {}, {}, "minimum memory usage per Pod is 1Gi.  No request is specified"),
        (
            "Container", {"maxLimitRequestRatio": {"cpu": "2"}}, {"cpu": "1"}, {"cpu": "3"},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            "Container", {"max": {"cpu": "1", "memory": "1Gi"}}, {}, {"cpu": "2", "memory": "2Gi"},
            "[maximum cpu usage per Container is 1, but limit is 2, "
            "maximum memory usage per Container is 1Gi, but limit is 2Gi]",
        ),
    ],
)  # fmt: skip
async def test_limit_range_bounds(
    world: Any, make_pod: Any, type_: str, bounds: Object, requests: Object, limits: Object, text: str
) -> None:
    plugin = LimitRanger(world.store)
    world.put(k.LIMIT_RANGE, "bounds", "default", spec={"limits": [{"type": type_, **bounds}]})
    with pytest.raises(Forbidden) as refused:
        plugin.validate(world.write("CREATE", k.POD, make_pod(requests=requests, limits=limits)))
    assert refused.value.message == f'pods "p" is forbidden: {text}'
    plugin.validate(world.write("CREATE", k.POD, make_pod(namespace="other", requests=requests, limits=limits)))


def claim(size: str, **spec: Any) -> Object:
    return {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"resources": {"requests": {"storage": size}}, **spec},
    }


async def test_limit_range_for_claims(world: Any) -> None:
    plugin = LimitRanger(world.store)
    bounds = {"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "10Gi"}}
    world.put(k.LIMIT_RANGE, "bounds", "default", spec={"limits": [bounds]})
    plugin.validate(world.write("CREATE", k.PERSISTENT_VOLUME_CLAIM, claim("5Gi")))
    with pytest.raises(Forbidden, match="maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"):
        plugin.validate(world.write("CREATE", k.PERSISTENT_VOLUME_CLAIM, claim("11Gi")))


async def test_priority(world: Any, make_pod: Any) -> None:
    plugin = Priority(world.store)

    def admit(**spec: Any) -> Object:
        pod = make_pod(**spec)
        plugin.mutate(world.write("CREATE", k.POD, pod))
        found: Object = pod["spec"]
        return found

    plain = admit()
    assert (plain["priority"], plain["preemptionPolicy"]) == (0, "PreemptLowerPriority")
    assert "priorityClassName" not in plain
    assert admit(priorityClassName="system-node-critical")["priority"] == 2_000_001_000
    world.put(k.PRIORITY_CLASS, "high", value=1000, preemptionPolicy="Never")
    high = admit(priorityClassName="high")
    assert (high["priority"], high["preemptionPolicy"]) == (1000, "Never")
    with pytest.raises(Forbidden, match='pods "p" is forbidden: no PriorityClass with name nope was found'):
        admit(priorityClassName="nope")
    with pytest.raises(Forbidden, match=r"the integer value of priority \(7\) must not be provided in pod spec"):
        admit(priority=7)
    default = world.put(k.PRIORITY_CLASS, "normal", value=10, globalDefault=True)
    assert admit()["priorityClassName"] == "normal"
    plugin.validate(world.write("UPDATE", k.PRIORITY_CLASS, default, default))
    second = {"metadata": {"name": "second"}, "value": 5, "globalDefault": True}
    with pytest.raises(
        Forbidden, match=r"PriorityClass normal is already marked as default. Only one default can exist"
    ):
        plugin.validate(world.write("CREATE", k.PRIORITY_CLASS, second))


async def test_default_tolerations(world: Any, make_pod: Any) -> None:
    plugin = DefaultTolerations()
    pod = make_pod()
    plugin.mutate(world.write("CREATE", k.POD, pod))
    assert [toleration["key"] for toleration in pod["spec"]["tolerations"]] == [
        "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
    ]  # fmt: skip
    plugin.mutate(world.write("UPDATE", k.POD, pod, pod))
    assert len(pod["spec"]["tolerations"]) == 2
    everything = make_pod(tolerations=[{"operator": "Exists"}])
    plugin.mutate(world.write("CREATE", k.POD, everything))
    assert everything["spec"]["tolerations"] == [{"operator": "Exists"}]


async def test_default_storage_class(world: Any) -> None:
    plugin = DefaultStorageClass(world.store)

    def admit(**spec: Any) -> Any:
        obj = claim("1Gi", **spec)
        plugin.mutate(world.write("CREATE", k.PERSISTENT_VOLUME_CLAIM, obj))
        return obj["spec"].get("storageClassName")

    assert admit() is None
    mark = {"storageclass.kubernetes.io/is-default-class": "true"}
    for name, made in (
        ("old", "2026-01-01T00:00:00Z"),
        ("b-new", "2026-02-01T00:00:00Z"),
        ("a-new", "2026-02-01T00:00:00Z"),
    ):
        world.put(k.STORAGE_CLASS, name, metadata={"annotations": mark, "creationTimestamp": made})
    assert admit() == "a-new"
    assert admit(storageClassName="") == ""
    assert admit(storageClassName="fast-ssd") == "fast-ssd"


async def test_storage_in_use(world: Any) -> None:
    obj = claim("1Gi")
    for _ in range(2):
        StorageObjectInUse().mutate(world.write("CREATE", k.PERSISTENT_VOLUME_CLAIM, obj))
    assert obj["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]


async def test_claim_resize(world: Any) -> None:
    plugin = ClaimResize(world.store)
    world.put(k.STORAGE_CLASS, "fast", allowVolumeExpansion=True)
    world.put(k.STORAGE_CLASS, "fixed")

    def grow(storage_class: str, phase: str = "Bound", size: str = "2Gi") -> None:
        old = {**claim("1Gi", storageClassName=storage_class), "status": {"phase": phase}}
        new = claim(size, storageClassName=storage_class)
        plugin.validate(world.write("UPDATE", k.PERSISTENT_VOLUME_CLAIM, new, old))

    grow("fast")
    grow("fixed", size="1Gi")
    with pytest.raises(Forbidden, match="the storageclass that provisions the pvc must support resize"):
        grow("fixed")
    with pytest.raises(Forbidden, match="Only bound persistent volume claims can be expanded"):
        grow("fast", phase="Pending")


async def test_the_standard_chain_admits_a_pod(world: Any, make_pod: Any) -> None:
    chain = standard_chain(world.store, Authorizer(world.store))
    world.put(k.NAMESPACE, "default", status={"phase": "Active"})
    world.put(k.SERVICE_ACCOUNT, "default", "default")
    pod = make_pod()
    write = world.write("CREATE", k.POD, pod)
    chain.mutate(write)
    chain.validate(write)
    assert pod["spec"]["priority"] == 0
