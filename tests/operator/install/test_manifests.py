"""What is installed, looked at as data: nothing runs as root, nobody has more rights than the kinds declare."""

from __future__ import annotations

import pytest

from danlu.kinds.registry import REGISTRY
from danlu.meta.kind import Object
from danlu.operator.install.manifests import InstallPart, parts
from danlu.operator.install.options import ADDONS, InstallOptions, OptionError, kinds_without


def _of(found: list[InstallPart], kind: str) -> list[Object]:
    return [part.object for part in found if part.object["kind"] == kind]


def test_pods_of_danlu_need_no_privilege() -> None:
    deployments = _of(parts(InstallOptions()), "Deployment")
    assert len(deployments) == 2
    for deployment in deployments:
        pod = deployment["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"]
            assert {"livenessProbe", "readinessProbe"} <= container.keys()


def test_no_role_has_a_star() -> None:
    for role in [*_of(parts(InstallOptions()), "ClusterRole"), *_of(parts(InstallOptions()), "Role")]:
        for rule in role["rules"]:
            assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], role["metadata"]


def test_leases_only_in_the_operators_own_namespace() -> None:
    found = parts(InstallOptions(namespace="elsewhere"))
    wide = [rule for role in _of(found, "ClusterRole") for rule in role["rules"]]
    assert not [rule for rule in wide if "leases" in rule["resources"]]
    (role,) = _of(found, "Role")
    assert role["metadata"]["namespace"] == "elsewhere"


def test_a_kind_that_is_left_out_takes_its_rights_with_it() -> None:
    fewer = InstallOptions(kinds=kinds_without(["kubeflow"]))
    found = parts(fewer)
    groups = {group for role in _of(found, "ClusterRole") for rule in role["rules"] for group in rule["apiGroups"]}
    assert "kubeflow.org" not in groups
    assert "batch.tensorstack.dev" in groups
    assert not [one for one in _of(found, "CustomResourceDefinition") if one["spec"]["group"] == "kubeflow.org"]
    (operator,) = [one for one in _of(found, "Deployment") if one["metadata"]["name"] == "danlu-operator"]
    (kinds,) = [
        word for word in operator["spec"]["template"]["spec"]["containers"][0]["args"] if word.startswith("--kinds=")
    ]
    assert "PyTorchJob" not in kinds.removeprefix("--kinds=").split(",")


@pytest.mark.parametrize(
    ("names", "left"),
    [
        ([], len(REGISTRY)),
        (["pytorchjobs"], len(REGISTRY) - 1),
        (["PyTorchJob"], len(REGISTRY) - 1),
        (["kubeflow"], len(REGISTRY) - 2),
        (["tensorstack"], 2),
    ],
)
def test_kinds_are_left_out_by_any_of_their_names(names: list[str], left: int) -> None:
    assert len(kinds_without(names)) == left


@pytest.mark.parametrize("names", [["pods"], ["kubeflow", "tensorstack"]])
def test_what_cannot_be_left_out_is_said(names: list[str]) -> None:
    with pytest.raises(OptionError):
        kinds_without(names)


def test_addons_come_when_asked() -> None:
    assert not _of(parts(InstallOptions()), "DaemonSet")
    images = [
        container["image"]
        for one in _of(parts(InstallOptions(addons=ADDONS)), "DaemonSet")
        for container in one["spec"]["template"]["spec"]["containers"]
    ]
    assert [image.rpartition("/")[2].partition(":")[0] for image in images] == ["k8s-device-plugin", "dcgm-exporter"]
