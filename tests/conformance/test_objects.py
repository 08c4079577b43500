"""Objects: create, change, list, delete; what is refused, and in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.conformance.conftest import Kube


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_create_get_delete(kube: Kube) -> None:
    assert kube("create", "-f", "-", stdin=config("a", x="1")) == "configmap/a created\n"
    found = kube.get("configmap", "a")
    assert found["data"] == {"x": "1"}
    assert found["metadata"]["uid"]
    assert found["metadata"]["resourceVersion"]
    assert 'configmaps "a" already exists' in kube.fails("create", "-f", "-", stdin=config("a"))
    kube("delete", "configmap", "a")
    assert 'configmaps "a" not found' in kube.fails("get", "configmap", "a")


def test_generate_name(kube: Kube) -> None:
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "made-"}}
    names = {kube("create", "-f", "-", "-o", "name", stdin=made).strip() for _ in range(3)}
    assert len(names) == 3
    assert all(name.startswith("configmap/made-") and len(name) == len("configmap/made-") + 5 for name in names)


def test_dry_run_leaves_nothing(kube: Kube) -> None:
    kube("create", "--dry-run=server", "-f", "-", stdin=config("ghost"))
    assert kube.run("get", "configmap", "ghost", check=False).returncode != 0


def test_an_old_version_is_refused(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a", x="1"))
    old = kube.get("configmap", "a")
    kube("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"x":"2"}}')
    old["data"]["x"] = "3"
    problem = kube.fails("replace", "-f", "-", stdin=old)
    assert 'Operation cannot be fulfilled on configmaps "a": the object has been modified' in problem
    assert kube.value("configmap/a", "{.data.x}") == "2"


def test_an_update_that_changes_nothing_keeps_the_version(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a", x="1"))
    before = kube.get("configmap", "a")
    kube("replace", "-f", "-", stdin=before)
    assert kube.get("configmap", "a")["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_three_patches(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a", x="1", y="2"))
    kube(
        "patch",
        "configmap",
        "a",
        "--type=json",
        "-p",
        '[{"op":"test","path":"/data/x","value":"1"},{"op":"remove","path":"/data/x"}]',
    )
    kube("patch", "configmap", "a", "--type=merge", "-p", '{"data":{"y":null,"z":"3"}}')
    kube("patch", "configmap", "a", "-p", '{"metadata":{"labels":{"l":"v"}}}')
    found = kube.get("configmap", "a")
    assert found["data"] == {"z": "3"}
    assert found["metadata"]["labels"] == {"l": "v"}
    problem = kube.fails("patch", "configmap", "a", "--type=json", "-p", '[{"op":"remove","path":"/data/none"}]')
    assert "the server rejected our request due to an error in our request" in problem


def test_strategic_patch_merges_by_key(kube: Kube) -> None:
    service = {
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
        "spec": {"clusterIP": "None", "selector": {"a": "b"},
                 "ports": [{"name": "one", "port": 1}, {"name": "two", "port": 2}]},
    }  # fmt: skip
    kube("create", "-f", "-", stdin=service)
    kube("patch", "service", "s", "-p", '{"spec":{"ports":[{"port":2,"name":"zwei"}]}}')
    ports = {port["port"]: port["name"] for port in kube.get("service", "s")["spec"]["ports"]}
    assert ports == {1: "one", 2: "zwei"}
    kube("patch", "service", "s", "-p", '{"spec":{"ports":[{"port":1,"$patch":"delete"}]}}')
    assert [port["port"] for port in kube.get("service", "s")["spec"]["ports"]] == [2]


def test_server_side_apply_owns_fields(kube: Kube) -> None:
    kube("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=config("a", x="1", y="1"))
    problem = kube.fails("apply", "--server-side", "--field-manager=two", "-f", "-", stdin=config("a", x="2"))
    assert 'conflict with "one": .data.x' in problem
    kube("apply", "--server-side", "--field-manager=two", "--force-conflicts", "-f", "-", stdin=config("a", x="2"))
    assert kube.get("configmap", "a")["data"] == {"x": "2", "y": "1"}
    # `one` no longer names y, nobody else owns it: it goes. x is now owned by two and stays.
    kube("apply", "--server-side", "--field-manager=one", "-f", "-", stdin=config("a"))
    assert kube.get("configmap", "a")["data"] == {"x": "2"}
    managers = {
        entry["manager"]: entry["operation"]
        for entry in kube.get("configmap", "a", "--show-managed-fields")["metadata"]["managedFields"]
    }
    assert managers["two"] == "Apply"


def test_client_side_apply_prunes_and_diff_tells(kube: Kube) -> None:
    kube("apply", "-f", "-", stdin=config("a", x="1", z="1"))
    changed = kube.run("diff", "-f", "-", stdin=config("a", x="1"), check=False)
    assert changed.returncode == 1
    assert "-  z:" in changed.stdout
    assert "configured" in kube("apply", "-f", "-", stdin=config("a", x="1"))
    assert kube.get("configmap", "a")["data"] == {"x": "1"}
    assert "unchanged" in kube("apply", "-f", "-", stdin=config("a", x="1"))


def test_selectors(kube: Kube) -> None:
    for name, colour in (("a", "red"), ("b", "green"), ("c", "blue")):
        kube("create", "-f", "-", stdin=config(name))
        kube("label", "configmap", name, f"colour={colour}")

    def names(*selector: str) -> list[str]:
        return kube("get", "configmap", *selector, "-o", "jsonpath={.items[*].metadata.name}").split()

    assert names("-l", "colour=red") == ["a"]
    assert names("-l", "colour in (red,blue)") == ["a", "c"]
    assert "b" not in names("-l", "colour,colour!=green")
    assert names("-l", "colour notin (red)", "--field-selector=metadata.name=c") == ["c"]
    assert '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"' in kube.fails(
        "get", "configmap", "--field-selector=spec.x=1"
    )
    problem = kube.fails("get", "pods", "--field-selector=spec.x=1")
    assert 'Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.x=1": ' in problem
    assert "field label not supported: spec.x" in problem
    assert "found '=', expected: ',' or 'end of string'" in kube.fails("get", "configmap", "-l", "a=b=c,,")


def test_lists_in_pages_show_one_moment(kube: Kube) -> None:
    for index in range(7):
        kube("create", "-f", "-", stdin=config(f"c{index}"))
    path = f"/api/v1/namespaces/{kube.namespace}/configmaps?limit=3"
    first = json.loads(kube("get", "--raw", path))
    kube("delete", "configmap", "c6")
    seen = [item["metadata"]["name"] for item in first["items"]]
    go_on, pages = first["metadata"]["continue"], 1
    while go_on:
        page = json.loads(kube("get", "--raw", f"{path}&continue={go_on}"))
        assert page["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
        seen += [item["metadata"]["name"] for item in page["items"]]
        go_on, pages = page["metadata"].get("continue"), pages + 1
    assert [name for name in seen if name.startswith("c")] == [f"c{index}" for index in range(7)]
    assert pages == 3


def test_watch_from_a_version(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a"))
    since = kube.get("configmap", "a")["metadata"]["resourceVersion"]
    kube("label", "configmap", "a", "seen=yes")
    kube("delete", "configmap", "a")
    query = f"watch=1&resourceVersion={since}&timeoutSeconds=2&fieldSelector=metadata.name%3Da"
    path = f"/api/v1/namespaces/{kube.namespace}/configmaps?{query}"
    events = [json.loads(line) for line in kube("get", "--raw", path).splitlines()]
    assert [event["type"] for event in events] == ["MODIFIED", "DELETED"]


def test_watch_with_a_selector_sees_things_come_and_go(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a"))
    since = kube.get("configmap", "a")["metadata"]["resourceVersion"]
    kube("label", "configmap", "a", "in=yes")
    kube("annotate", "configmap", "a", "note=x")
    kube("label", "configmap", "a", "in-")
    query = f"watch=1&resourceVersion={since}&timeoutSeconds=2&labelSelector=in%3Dyes"
    path = f"/api/v1/namespaces/{kube.namespace}/configmaps?{query}"
    events = [json.loads(line) for line in kube("get", "--raw", path).splitlines()]
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]


def test_initial_events_then_a_bookmark(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a"))
    path = (
        f"/api/v1/namespaces/{kube.namespace}/configmaps?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
        "&resourceVersionMatch=NotOlderThan&timeoutSeconds=2&fieldSelector=metadata.name%3Da"
    )
    events = [json.loads(line) for line in kube("get", "--raw", path).splitlines()]
    assert [event["type"] for event in events[:2]] == ["ADDED", "BOOKMARK"]
    assert events[1]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


def test_a_version_that_has_not_come_is_refused(kube: Kube) -> None:
    # Not through `kubectl get --raw`: that tries again ten times, as it is told to.
    status, answer = kube.http(f"/api/v1/namespaces/{kube.namespace}/configmaps?resourceVersion=99999999999999")
    assert status == 504
    assert "Too large resource version" in answer["message"]
    assert answer["details"]["retryAfterSeconds"] == 1


def test_finalizers_hold_an_object(kube: Kube) -> None:
    held = config("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    kube("create", "-f", "-", stdin=held)
    kube("delete", "configmap", "held", "--wait=false")
    assert kube.get("configmap", "held")["metadata"]["deletionTimestamp"]
    problem = kube.fails(
        "patch",
        "configmap",
        "held",
        "--type=merge",
        "-p",
        '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}',
    )
    assert "no new finalizers can be added if the object is being deleted" in problem
    kube("patch", "configmap", "held", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    kube.wait("it to be gone", lambda: kube.run("get", "configmap", "held", check=False).returncode != 0)


def test_delete_by_selector(kube: Kube) -> None:
    for name in ("a", "b"):
        kube("create", "-f", "-", stdin=config(name))
    kube("label", "configmap", "a", "old=yes")
    kube("delete", "configmap", "-l", "old=yes")
    assert "configmap/b" in kube("get", "configmap", "-o", "name")
    assert "configmap/a" not in kube("get", "configmap", "-o", "name")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"metadata": {"name": "Upper"}}, 'Invalid value: "Upper": a lowercase RFC 1123 subdomain must consist of'),
        ({"metadata": {"name": "a", "labels": {"-x": "1"}}},
         "metadata.labels: Invalid value: \"-x\": name part must consist of"),
        ({"metadata": {"name": "a", "labels": {"x": "a b"}}},
         "metadata.labels: Invalid value: \"a b\": a valid label must be"),
        ({"metadata": {"name": "a"}, "data": {"b c": "1"}},
         "data[b c]: Invalid value: \"b c\": a valid config key must consist of"),
        ({"metadata": {"name": "a"}, "datta": {}}, 'unknown field "datta"'),
        ({"metadata": {"name": "a"}, "data": {"a": 1}},
         "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
        ({"metadata": {"name": "a"}, "data": []},
         "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
    ],
)  # fmt: skip
def test_bad_objects_are_refused_in_known_words(kube: Kube, change: dict[str, Any], words: str) -> None:
    problem = kube.fails("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "ConfigMap", **change})
    assert words in problem
    assert kube("get", "configmap", "-o", "name").split() in ([], ["configmap/kube-root-ca.crt"])


def test_unknown_kinds_and_paths(kube: Kube) -> None:
    assert 'the server doesn\'t have a resource type "nonsense"' in kube.fails("get", "nonsense")
    assert "NotFound" in kube.fails("get", "--raw", "/apis/none.example.com/v1/things")


def test_status_and_spec_go_separate_ways(kube: Kube) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"pods": "5"}},
        "status": {"hard": {"pods": "9"}},
    }
    kube("create", "-f", "-", stdin=quota)
    kube.wait("the quota's status", lambda: kube.value("quota/q", "{.status.hard.pods}") == "5")
    kube("patch", "quota", "q", "--subresource=status", "--type=merge", "-p", '{"spec":{"hard":{"pods":"7"}}}')
    assert kube.value("quota/q", "{.spec.hard.pods}") == "5"


def test_tables(kube: Kube) -> None:
    kube("create", "-f", "-", stdin=config("a", x="1"))
    assert kube("get", "configmap", "a").splitlines()[0].split() == ["NAME", "DATA", "AGE"]
    assert kube("get", "service", "-n", "default", "kubernetes", "-o", "wide").splitlines()[0].split() == [
        "NAME", "TYPE", "CLUSTER-IP", "EXTERNAL-IP", "PORT(S)", "AGE", "SELECTOR",
    ]  # fmt: skip


def test_explain_reads_the_schema(kube: Kube) -> None:
    shown = kube("explain", "job.spec.backoffLimit")
    assert "FIELD: backoffLimit <integer>" in shown
    assert "GROUP:      batch" in shown
