"""Several people on one instance: `danlu up --shared` keeps their pods apart, or does not start."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.attack.conftest import NewPerson, Person
from tests.running import ORDINARY, Danlu, ordinary_python

from danlu.cli.language import language, speaking
from danlu.cli.local import trustwords as words
from danlu.client.client import Client
from danlu.embedded import trust
from danlu.embedded.apiserver.admission.namespace_users import BASELINE, ENFORCE, FIRST_USER
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.sandbox.box import Capabilities
from danlu.embedded.settings import ClusterSettings
from danlu.meta.wellknown import NAMESPACE, POD, SERVICE_ACCOUNT

PODS = "/api/v1/namespaces/a/pods"


@pytest.fixture
def settings(tmp_path: Path) -> ClusterSettings:
    return ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False, shared=True)


def pod(name: str = "x", namespace: str = "a", of_pod: Any = None, of_container: Any = None) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "c", "image": "busybox", "command": ["sleep", "600"]}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}
    if of_pod is not None:
        spec["securityContext"] = of_pod
    if of_container is not None:
        container["securityContext"] = of_container
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


# -- whose pods


async def with_account(client: Client, namespace: str) -> None:
    """The controller that would make it does not run here."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}}
    await client.create(SERVICE_ACCOUNT, account)


async def test_pods_of_two_projects_have_two_users(client: Client, new_person: NewPerson) -> None:
    users = []
    for name, namespace in (("mallory", "a"), ("alice", "b")):
        person = await new_person(name, namespace)
        await with_account(client, namespace)
        status, made = await person.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod(namespace=namespace))
        assert status == 201, made
        context = made["spec"]["securityContext"]
        user = context["runAsUser"]
        assert user >= FIRST_USER
        assert (context["runAsGroup"], context["fsGroup"], context["runAsNonRoot"]) == (user, user, True)
        assert made["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] is False
        users.append(user)
    assert users[0] != users[1]


@pytest.mark.parametrize(
    ("of_pod", "of_container"),
    [
        ({"runAsUser": 0}, None),
        ({"runAsUser": 1000}, None),
        ({"runAsGroup": 0}, None),
        ({"fsGroup": 0}, None),
        ({"supplementalGroups": [0]}, None),
        (None, {"runAsUser": 0}),
        (None, {"runAsGroup": 0}),
        (None, {"allowPrivilegeEscalation": True}),
    ],
)
async def test_nobody_chooses_another_user(
    client: Client, new_person: NewPerson, of_pod: Any, of_container: Any
) -> None:
    mallory = await new_person()
    await with_account(client, "a")
    status, answer = await mallory.request("POST", PODS, pod(of_pod=of_pod, of_container=of_container))
    assert (status, answer["reason"]) == (403, "Forbidden"), answer
    assert "on this shared instance pods of namespace a run as user" in answer["message"]


async def test_nobody_is_privileged(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    await with_account(client, "a")
    escape = {"privileged": True, "allowPrivilegeEscalation": True}
    status, answer = await mallory.request("POST", PODS, pod(of_container=escape))
    assert (status, answer["reason"]) == (403, "Forbidden"), answer
    assert 'violates PodSecurity "baseline:latest"' in answer["message"]


async def test_nor_by_a_debugging_container(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()
    await with_account(client, "a")
    assert (await mallory.request("POST", PODS, pod()))[0] == 201
    for context in ({"runAsUser": 0}, {"allowPrivilegeEscalation": True}):
        added = {"name": "debug", "image": "busybox", "securityContext": context}
        patch = {"spec": {"ephemeralContainers": [added]}}
        kind = "application/strategic-merge-patch+json"
        status, answer = await mallory.request("PATCH", f"{PODS}/x/ephemeralcontainers", patch, kind)
        assert status == 403, answer
    patch = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox"}]}}
    status, answer = await mallory.request("PATCH", f"{PODS}/x/ephemeralcontainers", patch, kind)
    assert status == 200, answer
    assert answer["spec"]["ephemeralContainers"][0]["securityContext"]["allowPrivilegeEscalation"] is False


async def test_new_namespaces_are_baseline_and_those_of_the_system_are_left_alone(client: Client) -> None:
    await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}})
    found = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in (await client.list(NAMESPACE)).items
    }
    assert found["new"][ENFORCE] == found["default"][ENFORCE] == BASELINE
    assert ENFORCE not in found["kube-system"]


async def test_only_an_administrator_trusts_a_namespace_more(client: Client, new_person: NewPerson) -> None:
    mallory = await new_person()  # every right in a, the namespace itself included
    kind = "application/merge-patch+json"
    for label, value, refusal in (
        (ENFORCE, "privileged", 403),
        (ENFORCE, None, 403),
        (ENFORCE, "nonsense", 422),
        (f"{ENFORCE}-version", "nonsense", 422),
    ):
        patch = {"metadata": {"labels": {label: value}}}
        status, answer = await mallory.request("PATCH", "/api/v1/namespaces/a", patch, kind)
        assert status == refusal, (label, value, answer)
    patch = {"metadata": {"labels": {ENFORCE: "restricted", "team": "x"}}}
    assert (await mallory.request("PATCH", "/api/v1/namespaces/a", patch, kind))[0] == 200
    await client.patch(NAMESPACE, "a", None, {"metadata": {"labels": {ENFORCE: "privileged"}}})
    patch = {"metadata": {"labels": {"team": "y"}}}
    assert (await mallory.request("PATCH", "/api/v1/namespaces/a", patch, kind))[0] == 200


async def test_nobody_is_served_anonymously(cluster: Cluster, new_person: NewPerson) -> None:
    somebody = await new_person()
    anonymous = Person("nobody", "", somebody.session, somebody.url)
    for path in ("/version", "/api", "/openapi/v2", PODS, "/readyz/ping", "//readyz", "/readyz%2f..%2fversion"):
        async with anonymous.session.get(anonymous.url + path) as answer:
            assert answer.status == 401, path
    async with anonymous.session.get(anonymous.url + "/readyz") as answer:
        assert (answer.status, await answer.text()) == (200, "ok")  # what looks whether it lives has no token


async def test_what_one_person_left_running_is_named(tmp_path: Path) -> None:
    settings = ClusterSettings(data_dir=tmp_path / "danlu", port=0, run_controllers=False, run_node=False)
    alone = Cluster(settings)
    await alone.start()
    await with_account(alone.client, "default")
    await alone.client.create(POD, pod(namespace="default"))
    await alone.stop()
    settings.shared = True
    with pytest.raises(trust.Unshareable) as refused:
        await Cluster(settings).start()
    assert refused.value.problems == [trust.Unmet("pods-from-before", {"pods": "default/x", "count": "1"})]


# -- where it cannot be promised

ROOT = Capabilities("root", "", "yes")


def test_every_unmet_promise_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def codes(pods: Capabilities, hiding_problem: str = "") -> list[str]:
        return [code for code, _ in trust.unmet(pods, hiding_problem, tmp_path / "not" / "yet")]

    assert codes(ROOT) == []
    assert codes(Capabilities("none", "why")) == ["no-namespaces"]
    assert codes(Capabilities("user", "")) == ["one-account"]
    assert codes(Capabilities("root", "")) == ["ports-shared"]
    assert codes(ROOT, "Operation not permitted") == ["processes-visible"]
    monkeypatch.setattr(trust, "_file_system", lambda place: "vfat")
    assert codes(Capabilities("none", "why")) == ["no-namespaces", "no-permissions"]
    uname = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((uname[0], uname[1], "4.19.0-x", uname[3], uname[4])))
    assert codes(ROOT) == ["old-kernel", "no-permissions"]


def test_every_problem_has_words_and_a_remedy_in_both_languages() -> None:
    parameters = dict.fromkeys(("reason", "account", "release", "problem", "path", "pods", "count"), "something")
    source = Path(trust.__file__).read_text() + Path(trust.__file__).with_name("cluster.py").read_text()
    codes = {text.split('"')[1] for text in source.split("Unmet(")[1:] if text.startswith('"')}
    assert codes == set(words.UNMET)
    for code in codes:
        said = []
        for one in ("en", "zh"):
            with speaking(one):
                said.append(words.refusal([trust.Unmet(code, parameters)]))
        english, chinese = said
        assert "something" in english
        assert english != chinese
        assert "{" not in english + chinese


def test_the_language_is_the_shells() -> None:
    assert language({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert language({}) == "en"


# -- as a process


@pytest.mark.e2e
def test_it_does_not_start_where_it_cannot_be_promised(make_danlu: Callable[..., Danlu]) -> None:
    danlu = make_danlu("--shared", "--no-console", start=False, variables={"DANLU_SANDBOX": "none"})
    refused = danlu.command("up", "--detach", "--port", "0", "--shared", "--no-console", check=False)
    assert refused.returncode == 1
    assert "--shared cannot keep what it promises" in refused.stderr
    assert "DANLU_SANDBOX=none" in refused.stderr
    assert "to do:" in refused.stderr
    assert danlu.command("status", check=False).returncode == 3
    danlu.variables["DANLU_LANG"] = "zh"
    said = danlu.command("up", "--detach", "--port", "0", "--shared", check=False).stderr
    assert "无法兑现" in said


@pytest.mark.e2e
def test_nor_as_an_ordinary_account(make_danlu: Callable[..., Danlu]) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become an ordinary account")
    danlu = make_danlu(user=ORDINARY, start=False)
    asks = "from danlu.embedded.node.sandbox import detection; print(detection.capabilities().mode)"
    mode = danlu.run(ordinary_python(), "-c", asks)
    refused = danlu.command("up", "--detach", "--port", "0", "--shared", "--no-console", check=False)
    assert refused.returncode == 1
    why = {"user": "all pods would run as one account", "none": "no file tree of their own"}
    assert why[mode.stdout.strip()] in refused.stderr


# What somebody's pod tries: which processes of others it sees, which it may signal (all numbers, seen or not), and
# whether it can become root. Signal 0 does nothing; that it may be sent is the answer.
LOOK = """
import os
found = []
for name in os.listdir('/proc'):
    try:
        if name.isdigit() and os.stat('/proc/' + name).st_uid != os.getuid():
            found.append('saw ' + name)
    except OSError:
        pass
for pid in range(1, min(int(open('/proc/sys/kernel/pid_max').read()), 1 << 22)):
    try:
        os.kill(pid, 0)
    except OSError:
        continue
    if not os.path.exists(f'/proc/{pid}'):
        found.append(f'may signal {pid}')
try:
    os.setuid(0)
    found.append('became root')
except OSError:
    pass
os.makedirs(os.environ['HOME'] + '/x')
print('uid', os.getuid(), 'groups', sorted(os.getgroups()), 'found', found, flush=True)
"""


@pytest.mark.e2e
def test_a_pod_sees_and_reaches_no_process_of_others(make_danlu: Callable[..., Danlu]) -> None:
    if os.geteuid() != 0:
        pytest.skip("--shared needs root")
    hiding = subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False)
    if hiding.returncode:
        pytest.skip("no mount namespaces here")
    danlu = make_danlu("--shared", "--no-console")
    assert "for several people" in danlu.command("status").stdout
    assert json.loads(danlu.command("status", "--json").stdout)["trust"] == "shared"
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(pod("victim", "default")))
    danlu.kubectl("wait", "--for=condition=Ready", "pod/victim", "--timeout=60s")
    danlu.kubectl("create", "namespace", "a")
    spy = pod("spy")
    spy["spec"]["containers"][0]["command"] = ["python3", "-c", LOOK]
    danlu.wait(
        "the account", lambda: danlu.run("kubectl", "-n", "a", "get", "sa", "default", check=False).returncode == 0
    )
    danlu.kubectl("apply", "-f", "-", stdin=json.dumps(spy))
    danlu.kubectl("-n", "a", "wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/spy", "--timeout=60s")
    said = danlu.kubectl("-n", "a", "logs", "spy")
    assert said.rstrip().endswith("found []"), said
    user = int(said.split()[1])
    assert user >= FIRST_USER
    assert f"groups [{user}]" in said
    # The victim's own view: its user is another.
    theirs = danlu.kubectl("exec", "victim", "--", "id", "-u").strip()
    assert int(theirs) >= FIRST_USER
    assert int(theirs) != user
