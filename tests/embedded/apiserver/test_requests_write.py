"""Creates and updates, in the words of a real Kubernetes 1.36.3 API server: each text was compared with its own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.apiserver.asking import DEFINITIONS, NAMESPACE, THINGS, Ask, config_map, definition, thing

from danlu.embedded.cluster import Cluster
from danlu.meta.wellknown import CONFIG_MAP

MAPS = f"{NAMESPACE}/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
IMMUTABLE = "field is immutable"


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


def owners(obj: dict[str, Any]) -> dict[str, Any]:
    return {entry["manager"]: entry["fieldsV1"] for entry in obj["metadata"].get("managedFields", [])}


async def test_bodies_that_are_refused(ask: Ask) -> None:
    unknown = 'is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"'
    cases: list[tuple[Any, int, str]] = [
        ("", 400, "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json "
         "parse error: unexpected end of JSON input (<empty>)"),
        ("{'a':1}", 400, "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; "
         "json parse error: invalid character '\\'' looking for beginning of object key string ({'a':1})"),
        ("null", 422, 'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required'),
        ({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}, 400,
         'Secret in version "v1" cannot be handled as a ConfigMap: converting (v1.Secret) to (core.ConfigMap): '
         "unknown conversion"),
        ({"apiVersion": "v2", "metadata": {"name": "x"}}, 400,
         f'ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" {unknown}'),
        (config_map("x", {"namespace": "other"}), 400,
         "the namespace of the provided object does not match the namespace sent on the request"),
        (config_map("x", {"finalizers": ["mine"]}), 422,
         'ConfigMap "x" is invalid: metadata.finalizers[0]: Invalid value: "mine": name is neither a standard '
         "finalizer name nor is it fully qualified"),
        (config_map("x", {"resourceVersion": "1"}), 400, "resourceVersion should not be set on objects to be created"),
    ]  # fmt: skip
    for body, status, message in cases:
        answer = await ask("POST", MAPS, body)
        assert (answer.status, answer.message) == (status, message)


async def test_options_that_are_refused(ask: Ask) -> None:
    await ask.made(MAPS, config_map("c"))
    cases = [
        ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ("dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"'),
        ("fieldValidation=No", 'fieldValidation: Unsupported value: "No": supported values: "", "Ignore", "Strict", '
         '"Warn"'),
        ("fieldManager=%01", 'fieldManager: Invalid value: "\\x01": invalid character U+0001 (at position 0)'),
        (f"fieldManager={'x' * 129}", "fieldManager: Too long: may not be more than 128 bytes"),
    ]  # fmt: skip
    for query, text in cases:
        for method, target, kind in (
            ("POST", MAPS, "CreateOptions"),
            ("PUT", f"{MAPS}/c", "UpdateOptions"),
            ("PATCH", f"{MAPS}/c", "PatchOptions"),
        ):
            answer = await ask(method, f"{target}?{query}", config_map("c"), "application/merge-patch+json")
            assert answer.status == 422, (method, query)
            assert answer.message == f'{kind}.meta.k8s.io "" is invalid: {text}'
            assert answer.body["details"]["kind"] == kind


async def test_a_dry_run_may_carry_a_version(ask: Ask) -> None:
    answer = await ask("POST", f"{MAPS}?dryRun=All", config_map("c", {"resourceVersion": "1"}))
    assert answer.status == 201
    assert (await ask("GET", f"{MAPS}/c")).status == 404


async def test_nothing_is_written_when_the_answer_cannot_be_given(ask: Ask) -> None:
    assert (await ask("POST", MAPS, config_map("c"), accept="text/html")).status == 406
    assert (await ask("GET", f"{MAPS}/c")).status == 404


async def test_what_the_server_sets_is_nobodys(ask: Ask) -> None:
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}}}
    made = await ask.made(f"{NAMESPACE}/services", service)
    assert made["spec"]["clusterIP"]
    assert "f:clusterIP" not in owners(made)["tester"]["f:spec"]
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}
    job = {"metadata": {"name": "j"}, "spec": {"template": template}}
    made = await ask.made("/apis/batch/v1/namespaces/default/jobs", job)
    assert made["spec"]["selector"]["matchLabels"]
    assert "f:selector" not in owners(made)["tester"]["f:spec"]
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
    made = await ask.made(f"{NAMESPACE}/persistentvolumeclaims", {"metadata": {"name": "p"}, **claim})
    assert made["metadata"]["finalizers"]
    assert "f:metadata" not in owners(made)["tester"]


async def test_a_client_may_say_who_owns_what(ask: Ask) -> None:
    entry = {
        "manager": "z", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:b": {}}},
    }  # fmt: skip
    made = await ask.made(MAPS, config_map("c", {"managedFields": [entry]}, a="1"))
    assert set(owners(made)) == {"z", "tester"}
    resets: list[list[dict[str, Any]]] = [[], [{}]]
    for reset in resets:
        again = (await ask("PUT", f"{MAPS}/c", config_map("c", {"managedFields": [entry]}, a="1"))).body
        assert owners(again).keys() >= {"z"}
        put = await ask("PUT", f"{MAPS}/c", config_map("c", {"managedFields": reset}, a="1"))
        assert owners(put.body) == {}, reset


async def test_owners_that_stand_twice_are_kept_once(ask: Ask) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1"}
    answer = await ask("POST", MAPS, config_map("c", {"ownerReferences": [owner, dict(owner)]}))
    assert answer.body["metadata"]["ownerReferences"] == [owner]
    assert "duplicate UID(s) observed: u1" in answer.headers["warning"]


async def test_updates_that_are_refused(ask: Ask) -> None:
    await ask.made(MAPS, config_map("c"))
    cases: list[tuple[dict[str, Any], int, str]] = [
        ({"name": ""}, 400, "the name of the object (c based on URL) was undeterminable: name must be provided"),
        ({"name": "d"}, 400, "the name of the object (d) does not match the name on the URL (c)"),
        ({"resourceVersion": "1"}, 409, 'Operation cannot be fulfilled on configmaps "c": the object has been '
         "modified; please apply your changes to the latest version and try again"),
        ({"resourceVersion": "abc"}, 400, 'strconv.ParseUint: parsing "abc": invalid syntax'),
        ({"deletionTimestamp": "2020-01-01T00:00:00Z"}, 422, 'ConfigMap "c" is invalid: metadata.deletionTimestamp: '
         f'Invalid value: "2020-01-01T00:00:00Z": {IMMUTABLE}'),
    ]  # fmt: skip
    for metadata, status, message in cases:
        answer = await ask("PUT", f"{MAPS}/c", config_map("c", metadata))
        assert (answer.status, answer.message) == (status, message)
    quiet = {"creationTimestamp": "2020-01-01T00:00:00Z", "generation": 7, "selfLink": "/x", "resourceVersion": "0"}
    answer = await ask("PUT", f"{MAPS}/c", config_map("c", quiet, a="1"))
    assert answer.status == 200
    assert answer.body["metadata"]["creationTimestamp"] != quiet["creationTimestamp"]
    assert not {"generation", "selfLink"} & set(answer.body["metadata"])


async def test_a_name_whose_object_is_going_is_still_taken(ask: Ask) -> None:
    await ask.made(MAPS, config_map("c", {"finalizers": ["a.io/b"]}))
    await ask("DELETE", f"{MAPS}/c")
    answer = await ask("POST", MAPS, config_map("c"))
    assert answer.message == 'object is being deleted: configmaps "c" already exists'
    put = await ask("PUT", f"{MAPS}/c", config_map("c", {"finalizers": ["a.io/b", "a.io/c"]}))
    assert put.status == 422
    assert "no new finalizers can be added if the object is being deleted" in put.message


async def test_leases_are_updated_by_version_only(ask: Ask) -> None:
    lease = {"metadata": {"name": "l", "resourceVersion": "5"}, "spec": {"holderIdentity": "x"}}
    assert (await ask("PUT", f"{LEASES}/l", lease)).status == 201
    answer = await ask("PUT", f"{LEASES}/l", {"metadata": {"name": "l"}})
    assert answer.message == (
        'leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for '
        "an update"
    )
    assert answer.body["details"] | {"causes": []} == {
        "name": "l", "group": "coordination.k8s.io", "kind": "leases", "causes": [],
    }  # fmt: skip


async def test_custom_objects(ask: Ask) -> None:
    await ask.made(DEFINITIONS, definition())
    made = await ask.made(THINGS, thing("t", {"finalizers": ["mine"]}, spec={"color": "blue"}, status={"ready": True}))
    assert "status" not in made
    assert owners(made)["tester"].keys() == {"f:metadata", "f:spec"}
    cases: list[tuple[Any, int, str]] = [
        ({"metadata": {"name": "u"}}, 400, "the object provided is unrecognized (must be of type Thing): Object 'Kind' "
         """is missing in '{"metadata":{"name":"u"}}' ({"metadata":{"name":"u"}})"""),
        ({**thing("u"), "apiVersion": "v1"}, 400,
         "the API version in the data (v1) does not match the expected API version (example.com/v1)"),
        ({**thing("u"), "kind": "Bar"}, 422,
         'Bar.example.com "u" is invalid: kind: Invalid value: "Bar": must be Thing'),
    ]  # fmt: skip
    for body, status, message in cases:
        answer = await ask("POST", THINGS, body)
        assert (answer.status, answer.message) == (status, message)
    answer = await ask("PUT", f"{THINGS}/t", thing("t"))
    assert answer.status == 422
    assert answer.message.startswith('things.example.com "t" is invalid: metadata.resourceVersion: Invalid value: 0')


async def test_events_are_named_without_their_second_group(ask: Ask) -> None:
    answer = await ask("POST", "/apis/events.k8s.io/v1/namespaces/default/events", {"metadata": {"name": "e"}})
    assert answer.status == 422
    assert answer.message.startswith('Event "e" is invalid: ')
    assert "group" not in answer.body["details"]


async def test_parts_of_the_system_own_what_they_set(cluster: Cluster) -> None:
    made = await cluster.component("system:kube-scheduler").create(CONFIG_MAP, config_map("c", a="1"), "default")
    assert set(owners(made)) == {"kube-scheduler"}
    made = await cluster.component("system:node:here").create(CONFIG_MAP, config_map("d", a="1"), "default")
    assert set(owners(made)) == {"kubelet"}
