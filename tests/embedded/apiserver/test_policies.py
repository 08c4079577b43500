"""Admission policies in CEL: who they concern, what they refuse, what they change."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.apiserver.asking import NAMESPACE, Ask, config_map

from danlu.embedded.cluster import Cluster

API = "/apis/admissionregistration.k8s.io/v1"
MAPS = f"{NAMESPACE}/configmaps"


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


def rules(*resources: str, operations: tuple[str, ...] = ("CREATE", "UPDATE"), **more: Any) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": list(operations), "resources": list(resources)}
    return {"resourceRules": [rule], **more}


async def put_in_force(ask: Ask, spec: dict[str, Any], kind: str = "Validating", **binding: Any) -> None:
    policy = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": f"{kind}AdmissionPolicy"}
    body = {**policy, "metadata": {"name": "p"}, "spec": {"matchConstraints": rules("configmaps"), **spec}}
    await ask.made(f"{API}/{kind.lower()}admissionpolicies", body)
    if kind == "Validating":
        binding.setdefault("validationActions", ["Deny"])
    bound = {**policy, "kind": f"{kind}AdmissionPolicyBinding", "metadata": {"name": "b"}}
    await ask.made(f"{API}/{kind.lower()}admissionpolicybindings", {**bound, "spec": {"policyName": "p", **binding}})


async def test_a_validation_that_fails_refuses_the_write(ask: Ask) -> None:
    validation = {"expression": "object.data.size == 'small'", "messageExpression": "'too ' + object.data.size"}
    await put_in_force(ask, {"validations": [validation]})
    answer = await ask("POST", MAPS, config_map("c", size="large"))
    assert answer.status == 422
    assert answer.message == (
        "configmaps \"c\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: too large"
    )
    assert answer.body["reason"] == "Invalid"
    await ask.made(MAPS, config_map("c", size="small"))
    assert (await ask("PUT", f"{MAPS}/c", config_map("c", size="large"))).status == 422
    # Not its business: another kind, and a delete.
    await ask.made(f"{NAMESPACE}/secrets", {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}})
    assert (await ask("DELETE", f"{MAPS}/c")).status == 200


async def test_an_expression_without_an_answer_fails_as_the_policy_says(ask: Ask) -> None:
    await put_in_force(ask, {"validations": [{"expression": "object.data.missing == 'x'"}]})
    answer = await ask("POST", MAPS, config_map("c"))
    assert answer.status == 422
    assert "resulted in error: no such key" in answer.message
    patch = '{"spec": {"failurePolicy": "Ignore"}}'
    await ask("PATCH", f"{API}/validatingadmissionpolicies/p", patch, "application/merge-patch+json")
    await ask.made(MAPS, config_map("c"))


async def test_conditions_variables_and_parameters(ask: Ask) -> None:
    await ask.made(MAPS, config_map("limits", size="3"))
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConditions": [{"name": "marked", "expression": "'checked' in object.metadata.?labels.orValue({})"}],
        "variables": [{"name": "size", "expression": "int(object.data.size)"}],
        "validations": [{"expression": "variables.size <= int(params.data.size)", "message": "larger than allowed"}],
    }  # fmt: skip
    reference = {"name": "limits", "namespace": "default", "parameterNotFoundAction": "Deny"}
    await put_in_force(ask, spec, paramRef=reference)
    await ask.made(MAPS, config_map("free", size="9"))
    marked = {"labels": {"checked": "yes"}}
    answer = await ask("POST", MAPS, config_map("c", marked, size="9"))
    assert answer.message.endswith("denied request: larger than allowed")
    await ask.made(MAPS, config_map("c", marked, size="2"))


async def test_a_warning_lets_it_pass(ask: Ask) -> None:
    await put_in_force(
        ask, {"validations": [{"expression": "false", "message": "hm"}]}, validationActions=["Warn", "Audit"]
    )
    answer = await ask("POST", MAPS, config_map("c"))
    assert answer.status == 201
    assert "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': hm" in answer.headers["warning"]


async def test_a_binding_narrows_the_policy_to_namespaces(ask: Ask) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
    await put_in_force(ask, {"validations": [{"expression": "false"}]}, matchResources={"namespaceSelector": selector})
    await ask.made(MAPS, config_map("c"))
    assert (await ask("POST", "/api/v1/namespaces/kube-system/configmaps", config_map("c"))).status == 422


async def test_an_applied_configuration_is_merged_into_the_object(ask: Ask) -> None:
    expression = 'Object{metadata: Object.metadata{labels: {"by": request.userInfo.username}}, data: {"added": "1"}}'
    mutation = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}}
    await put_in_force(ask, {"mutations": [mutation], "reinvocationPolicy": "Never"}, "Mutating")
    made = await ask.made(MAPS, config_map("c", {"labels": {"own": "x"}}, kept="2"))
    assert made["metadata"]["labels"] == {"own": "x", "by": "admin"}
    assert made["data"] == {"kept": "2", "added": "1"}


async def test_a_json_patch_is_applied_and_a_wrong_one_is_refused(ask: Ask) -> None:
    patch = '[JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("a/b"), value: "1"}]'
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}
    await put_in_force(ask, {"mutations": [mutation], "reinvocationPolicy": "Never"}, "Mutating")
    made = await ask.made(MAPS, config_map("c", {"annotations": {"k": "v"}}))
    assert made["metadata"]["annotations"] == {"k": "v", "a/b": "1"}
    answer = await ask("POST", MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}})
    assert answer.status == 422
    assert "policy 'p' with binding 'b' denied request" in answer.message


async def test_a_policy_that_does_not_compile_is_refused(ask: Ask) -> None:
    policy = {
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {"matchConstraints": rules("configmaps"), "validations": [{"expression": "objekt.spec > 1"}]},
    }  # fmt: skip
    answer = await ask("POST", f"{API}/validatingadmissionpolicies", policy)
    assert answer.status == 422
    assert "undeclared reference to 'objekt'" in answer.message


async def test_a_change_of_a_policy_or_a_binding_counts_from_the_next_write_on(ask: Ask) -> None:
    await put_in_force(ask, {"validations": [{"expression": "false"}], "matchConstraints": rules("secrets")})
    await ask.made(MAPS, config_map("before"))
    policy, binding = f"{API}/validatingadmissionpolicies/p", f"{API}/validatingadmissionpolicybindings/b"
    merge = "application/merge-patch+json"
    await ask("PATCH", policy, {"spec": {"matchConstraints": rules("configmaps")}}, merge)
    assert (await ask("POST", MAPS, config_map("c"))).status == 422
    await ask("PATCH", binding, {"spec": {"matchResources": rules("pods")}}, merge)
    await ask.made(MAPS, config_map("narrowed"))
    await ask("PATCH", binding, {"spec": {"matchResources": None}}, merge)
    assert (await ask("POST", MAPS, config_map("c"))).status == 422
    await ask("DELETE", binding)
    await ask.made(MAPS, config_map("c"))
