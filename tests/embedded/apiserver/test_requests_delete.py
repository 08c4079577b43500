"""Deletes, in the words of a real Kubernetes 1.36.3 API server."""

from __future__ import annotations

from typing import Any

import pytest
from tests.embedded.apiserver.asking import NAMESPACE, Ask, config_map

from danlu.embedded.cluster import Cluster
from danlu.embedded.storage import Change, SqliteJournal

MAPS = f"{NAMESPACE}/configmaps"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}}


@pytest.fixture
def ask(cluster: Cluster) -> Ask:
    return Ask(cluster)


async def test_options_that_are_refused(ask: Ask) -> None:
    made = await ask.made(MAPS, config_map("c"))
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    invalid = 'DeleteOptions.meta.k8s.io "" is invalid: '
    cases: list[tuple[str, Any, int, str]] = [
        ("?dryRun=Foo", None, 422, f'{invalid}dryRun: Unsupported value: ["Foo"]: supported values: "All"'),
        ("?propagationPolicy=Foo", None, 422, f'{invalid}propagationPolicy: Unsupported value: "Foo": supported '
         'values: "Foreground", "Background", "Orphan", "nil"'),
        ("", {"kind": "Pod", "apiVersion": "v1"}, 400,
         'no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"'),
        ("", {"gracePeriodSeconds": "x"}, 400,
         "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64"),
        ("", "{", 400, "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        ("", {"preconditions": {"uid": "abc"}}, 409, 'Operation cannot be fulfilled on ConfigMap "c": the UID in the '
         f"precondition (abc) does not match the UID in record ({uid}). The object might have been deleted and then "
         "recreated"),
        ("", {"preconditions": {"resourceVersion": "1"}}, 409, 'Operation cannot be fulfilled on ConfigMap "c": the '
         f"ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The "
         "object might have been modified"),
    ]  # fmt: skip
    for query, body, status, message in cases:
        answer = await ask("DELETE", f"{MAPS}/c{query}", body)
        assert (answer.status, answer.message) == (status, message)
    assert (await ask("DELETE", f"{MAPS}/c?dryRun=All")).status == 200
    assert (await ask("GET", f"{MAPS}/c")).status == 200


async def test_what_a_delete_answers(ask: Ask) -> None:
    """Most kinds answer with a Status, some with what is gone now."""
    made = await ask.made(MAPS, config_map("c"))
    gone = await ask("DELETE", f"{MAPS}/c")
    assert gone.body["status"] == "Success"
    assert gone.body["details"] == {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    for target, obj in (
        ("/apis/storage.k8s.io/v1/storageclasses", {"metadata": {"name": "x"}, "provisioner": "y"}),
        (f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "x"}}),
        (f"{NAMESPACE}/resourcequotas", {"metadata": {"name": "x"}}),
        (f"{NAMESPACE}/services", {"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}}),
    ):
        made = await ask.made(target, obj)
        assert (await ask("DELETE", f"{target}/x")).body["metadata"]["uid"] == made["metadata"]["uid"], target


async def test_jobs_leave_their_pods_unless_told_otherwise(ask: Ask) -> None:
    for name in "ab":
        await ask.made(JOBS, {"metadata": {"name": name}, "spec": {"template": TEMPLATE}})
    answer = await ask("DELETE", f"{JOBS}/a")
    assert answer.body["metadata"]["finalizers"] == ["orphan"]
    assert answer.headers["warning"] == (
        '299 - "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove '
        'them or set propagationPolicy=Orphan to suppress this warning"'
    )
    answer = await ask("DELETE", f"{JOBS}/b?propagationPolicy=Background")
    assert answer.body["status"] == "Success"
    assert "warning" not in answer.headers


async def test_a_second_delete_only_shortens_the_wait(ask: Ask) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}}
    await ask.made(f"{NAMESPACE}/pods", pod)
    waits: list[tuple[str, int]] = [("", 30), ("?gracePeriodSeconds=100", 30), ("?gracePeriodSeconds=5", 5)]
    for query, grace in waits:
        meta = (await ask("DELETE", f"{NAMESPACE}/pods/p{query}")).body["metadata"]
        assert (meta["deletionGracePeriodSeconds"], meta["generation"]) == (grace, 2), query
    assert (await ask("DELETE", f"{NAMESPACE}/pods/p?gracePeriodSeconds=0")).status == 200
    assert (await ask("GET", f"{NAMESPACE}/pods/p")).status == 404


async def test_finalizers_of_the_garbage_collector(ask: Ask) -> None:
    await ask.made(MAPS, config_map("c"))
    for policy, finalizers in (("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"])):
        answer = await ask("DELETE", f"{MAPS}/c?propagationPolicy={policy}")
        assert answer.body["metadata"]["finalizers"] == finalizers
    assert (await ask("DELETE", f"{MAPS}/c?propagationPolicy=Background")).body["status"] == "Success"


async def test_a_binding_is_said_once_and_owned_by_nobody(ask: Ask) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    made = await ask.made(f"{NAMESPACE}/pods", pod)
    binding: dict[str, Any] = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    answer = await ask("POST", f"{NAMESPACE}/pods/p/binding", {**binding, "metadata": {"name": "q"}})
    assert answer.message == "name in URL does not match name in Binding object"
    assert (await ask("POST", f"{NAMESPACE}/pods/p/binding", binding)).status == 201
    bound = (await ask("GET", f"{NAMESPACE}/pods/p")).body
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["managedFields"] == made["metadata"]["managedFields"]
    again = await ask("POST", f"{NAMESPACE}/pods/p/binding", binding)
    assert again.message == ('Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n"')
    evicted = await ask("POST", f"{NAMESPACE}/pods/p/eviction", {"metadata": {"name": "q"}})
    assert evicted.message == "name in URL does not match name in Eviction object"
    assert (await ask("POST", f"{NAMESPACE}/pods/p/eviction", {"metadata": {"name": "p"}})).status == 201


async def test_a_collection_is_one_commit_and_each_object_has_its_own_end(ask: Ask, cluster: Cluster) -> None:
    store, count = cluster.store, 40
    for number in range(count):
        await ask.made(MAPS, config_map(f"c{number:02}"))
    kept = config_map("c99-kept")
    kept["metadata"]["finalizers"] = ["example.com/keep"]
    await ask.made(MAPS, kept)
    watch = store.subscribe("configmaps", store.revision)
    journal, commits = store._journal, []
    assert isinstance(journal, SqliteJournal)
    commit = journal._commit

    def counting(batch: list[Change]) -> None:
        commits.append(sum(change.type == "DELETED" and change.stored.name.startswith("c") for change in batch))
        commit(batch)

    journal._commit = counting  # type: ignore[method-assign]
    assert (await ask("DELETE", MAPS)).status == 200
    assert [number for number in commits if number] == [count]
    seen: list[tuple[str, str]] = []
    revisions: list[int] = []
    for change in await watch.take(5):
        seen.append((change.type, change.stored.name))
        revisions.append(change.revision)
        assert change.stored.obj["metadata"]["resourceVersion"] == str(change.revision)
    mine = [one for one in seen if one[1].startswith("c")]
    assert mine == [*(("DELETED", f"c{number:02}") for number in range(count)), ("MODIFIED", "c99-kept")]
    assert revisions == sorted(set(revisions))
    assert "deletionTimestamp" in (await ask("GET", f"{MAPS}/c99-kept")).body["metadata"]


async def test_a_collection_ends_at_the_first_that_is_refused(ask: Ask) -> None:
    for name in ("a", "b"):
        await ask.made(MAPS, config_map(name))
    uid = (await ask("GET", f"{MAPS}/a")).body["metadata"]["uid"]
    assert (await ask("DELETE", MAPS, {"preconditions": {"uid": uid}})).status == 409
    assert (await ask("GET", f"{MAPS}/a")).status == 404
    assert (await ask("GET", f"{MAPS}/b")).status == 200
