"""Pods on a real node behind a real API server: what a user sees of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from danlu import errors
from danlu.client.client import Client
from danlu.diagnose import causes_in
from danlu.embedded.cluster import Cluster
from danlu.embedded.node.agent import Agent, AgentParts
from danlu.embedded.node.logs import logfiles
from danlu.embedded.node.pressure import eviction
from danlu.embedded.node.sandbox.procfs import start_time
from danlu.embedded.node.settings import NodeSettings
from danlu.embedded.settings import NodeShare
from danlu.environments.catalogue import Catalogue
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.wellknown import CONFIG_MAP, EVENT, NODE, POD

NODE_NAME = "n1"
QUICK = NodeSettings(first_backoff_s=0.4, longest_backoff_s=0.8, retry_s=0.2, eviction_period_s=3600.0)
TIMEOUT_S = 30.0


def make_agent(cluster: Cluster, settings: NodeSettings = QUICK, *, strict_images: bool = False) -> Agent:
    return Agent(
        cluster.component(f"system:node:{NODE_NAME}"),
        cluster.directory.root,
        shares=[NodeShare(NODE_NAME, cpu=2, memory=4 << 30)],
        settings=settings,
        parts=AgentParts(images=Catalogue(cluster.directory.root, strict=strict_images)),
    )


@pytest.fixture
async def agent(cluster: Cluster) -> AsyncIterator[Agent]:
    made = make_agent(cluster)
    await made.start()
    yield made
    await made.stop(kill_pods=True)


def pod(name: str, *command: str, **spec: Any) -> Object:
    container: Object = {"name": "c", "image": "busybox", "command": list(command), **spec.pop("container", {})}
    whole = {
        "nodeName": NODE_NAME, "automountServiceAccountToken": False, "terminationGracePeriodSeconds": 1,
        "containers": [container], **spec,
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": whole}


async def run(client: Client, made: Object, until: Callable[[Object], bool]) -> Object:
    await client.create(POD, made, "default")
    return await reach(client, made["metadata"]["name"], until)


async def reach(client: Client, name: str, until: Callable[[Object], bool]) -> Object:
    found: Object = {}
    try:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                found = await client.get(POD, name, "default")
                if until(found):
                    return found
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(json.dumps(found.get("status"), indent=1)) from None


async def gone(client: Client, name: str) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while True:
            try:
                await client.get(POD, name, "default")
            except errors.NotFound:
                return
            await asyncio.sleep(0.01)


def in_phase(*phases: str) -> Callable[[Object], bool]:
    return lambda found: found["status"].get("phase") in phases


def waits_for(reason: str) -> Callable[[Object], bool]:
    return lambda found: state(found).get("waiting", {}).get("reason") == reason


def state(found: Object, name: str = "c") -> Object:
    for key in ("containerStatuses", "initContainerStatuses"):
        for entry in found["status"].get(key) or ():
            if entry["name"] == name:
                return dict(entry["state"])
    return {}


def codes(found: Object) -> list[str]:
    """What its node says of it, beside its status."""
    return [cause.code for cause in causes_in(found)]


def ready(found: Object) -> bool:
    return conditions.is_true(found["status"].get("conditions"), "Ready")


async def reasons(client: Client, name: str) -> list[tuple[str, str]]:
    await asyncio.sleep(0.1)  # events are written behind the caller's back
    found = (await client.list(EVENT, "default", fields=f"involvedObject.name={name}")).items
    return [(event["reason"], event["message"]) for event in found]


def text_of(agent: Agent, found: Object, attempt: int = 0) -> str:
    return Path(logfiles.path_for(str(agent.data_dir), found["metadata"]["uid"], "c", attempt)).read_text()


async def test_the_node_is_there(agent: Agent, client: Client) -> None:
    node = await client.get(NODE, NODE_NAME)
    assert conditions.is_true(node["status"]["conditions"], "Ready")
    assert node["status"]["allocatable"]["cpu"] == "2"
    assert node["status"]["nodeInfo"]["kubeletVersion"].startswith("v1.36")
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == NODE_NAME


async def test_a_pod_runs_to_its_end(agent: Agent, client: Client) -> None:
    script = "echo hello; echo why > ${DANLU_MOUNT_DEV_TERMINATION_LOG:-/dev/termination-log}; exit 3"
    made = pod("p", "sh", "-c", script, restartPolicy="Never")
    found = await run(client, made, in_phase("Failed"))
    ended = state(found)["terminated"]
    assert (ended["exitCode"], ended["reason"], ended["message"]) == (3, "Error", "why\n")
    assert text_of(agent, found) == "hello\n"
    assert [reason for reason, _ in await reasons(client, "p")] == ["Pulled", "Created", "Started"]


async def test_success(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "true", restartPolicy="OnFailure"), in_phase("Succeeded", "Failed"))
    assert found["status"]["phase"] == "Succeeded"
    assert state(found)["terminated"]["reason"] == "Completed"
    condition = conditions.get(found["status"]["conditions"], "Ready")
    assert condition is not None
    assert condition["reason"] == "PodCompleted"


async def test_running_has_an_address_and_deletion_ends_it(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "sleep", "1000"), ready)
    assert ip_address(found["status"]["podIP"]) in ip_network(QUICK.pod_network)
    assert found["status"]["phase"] == "Running"
    pid = agent.pods.workers[found["metadata"]["uid"]].running[0].pid
    await client.delete(POD, "p", "default")
    await gone(client, "p")
    assert not start_time(pid)
    for _ in range(100):
        if not agent.containers.pod_folder(found["metadata"]["uid"]).exists():
            break
        await asyncio.sleep(0.02)
    assert not agent.containers.pod_folder(found["metadata"]["uid"]).exists()


def processes_with(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
    return found


async def test_a_pod_deleted_while_it_starts_leaves_nothing_running(agent: Agent, client: Client) -> None:
    for number in range(12):
        await client.create(POD, pod(f"p{number}", "sleep", "987654"), "default")
        await asyncio.sleep(0.003 * number)
        await client.delete(POD, f"p{number}", "default", grace=0 if number % 2 else 1)
    for number in range(12):
        await gone(client, f"p{number}")
    for _ in range(300):
        if not processes_with("987654"):
            break
        await asyncio.sleep(0.02)
    assert processes_with("987654") == []


async def test_who_does_not_listen_is_killed_after_the_grace(agent: Agent, client: Client) -> None:
    await run(client, pod("p", "sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"), ready)
    await client.delete(POD, "p", "default", grace=1)
    await gone(client, "p")


async def test_crashes_wait_longer_each_time(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "false"), waits_for("CrashLoopBackOff"))
    assert found["status"]["phase"] == "Running"
    assert "restarting failed container=c pod=p_default(" in state(found)["waiting"]["message"]
    found = await reach(client, "p", lambda p: p["status"]["containerStatuses"][0]["restartCount"] >= 3)
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 1


async def test_a_command_that_is_not_there(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "foo", restartPolicy="Never"), in_phase("Failed"))
    ended = state(found)["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (128, "StartError")
    assert ended["message"] == 'exec: "foo": executable file not found in $PATH'


async def test_init_containers_and_sidecars(agent: Agent, client: Client) -> None:
    first = {"name": "first", "image": "busybox", "command": ["sh", "-c", "echo 1 > /danlu-test/work/first"]}
    sidecar = {"name": "side", "image": "busybox", "command": ["sleep", "1000"], "restartPolicy": "Always"}
    second = {"name": "second", "image": "busybox", "command": ["test", "-f", "/danlu-test/work/first"]}
    mount = {"volumeMounts": [{"name": "work", "mountPath": "/danlu-test/work"}]}
    made = pod(
        "p", "cat", "/danlu-test/work/first", restartPolicy="Never", container=mount,
        initContainers=[{**first, **mount}, sidecar, {**second, **mount}], volumes=[{"name": "work", "emptyDir": {}}],
    )  # fmt: skip
    found = await run(client, made, in_phase("Succeeded", "Failed"))
    assert found["status"]["phase"] == "Succeeded"
    assert text_of(agent, found) == "1\n"
    assert "terminated" in state(found, "side")


async def test_a_failed_init_container_fails_the_pod(agent: Agent, client: Client) -> None:
    init = [{"name": "i", "image": "busybox", "command": ["false"]}]
    found = await run(client, pod("p", "true", restartPolicy="Never", initContainers=init), in_phase("Failed"))
    assert state(found) == {"waiting": {"reason": "PodInitializing"}}


async def test_what_is_missing_is_waited_for(agent: Agent, client: Client) -> None:
    environment = {"envFrom": [{"configMapRef": {"name": "later"}}]}
    made = pod("p", "sh", "-c", "echo $WORD", restartPolicy="Never", container=environment)
    found = await run(client, made, waits_for("CreateContainerConfigError"))
    assert state(found)["waiting"]["message"] == 'configmap "later" not found'
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later"}, "data": {"WORD": "now"}}
    await client.create(CONFIG_MAP, config, "default")
    found = await reach(client, "p", in_phase("Succeeded"))
    assert text_of(agent, found) == "now\n"


async def test_an_image_without_a_command(agent: Agent, client: Client) -> None:
    made = pod("p")
    made["spec"]["containers"] = [{"name": "c", "image": "example.com/unknown"}]
    found = await run(client, made, waits_for("CreateContainerError"))
    assert "no command specified" in state(found)["waiting"]["message"]
    assert codes(found) == ["DL-IMAGE-UNKNOWN", "DL-NO-COMMAND"]


async def test_strict_images(cluster: Cluster, client: Client) -> None:
    quick = NodeSettings(retry_s=0.2)
    agent = make_agent(cluster, quick, strict_images=True)
    await agent.start()
    made = pod("p", "true", container={"image": "example.com/unknown:1"})
    await run(client, made, waits_for("ErrImagePull"))
    found = await reach(client, "p", waits_for("ImagePullBackOff"))
    assert codes(found) == ["DL-IMAGE-NOT-LISTED"], "a list has no events to read it from"
    assert ("Failed", "Error: ErrImagePull") in await reasons(client, "p")
    await agent.stop(kill_pods=True)


async def test_deadline(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "sleep", "1000", activeDeadlineSeconds=1), in_phase("Failed"))
    assert found["status"]["reason"] == "DeadlineExceeded"


async def test_too_much_memory(agent: Agent, client: Client) -> None:
    limits = {"resources": {"limits": {"memory": "40Mi"}}}
    hungry = "a=x; while :; do a=$a$a; done"
    found = await run(client, pod("p", "sh", "-c", hungry, restartPolicy="Never", container=limits), in_phase("Failed"))
    ended = state(found)["terminated"]
    assert (ended["reason"], ended["exitCode"]) == ("OOMKilled", 137)


async def test_cpu_limits_set_thread_counts(agent: Agent, client: Client) -> None:
    limits = {"resources": {"limits": {"cpu": "1500m"}}, "env": [{"name": "MKL_NUM_THREADS", "value": "7"}]}
    script = "echo $OMP_NUM_THREADS $MKL_NUM_THREADS"
    found = await run(
        client, pod("p", "sh", "-c", script, restartPolicy="Never", container=limits), in_phase("Succeeded")
    )
    assert text_of(agent, found) == f"{min(2, os.cpu_count() or 1)} 7\n"


async def test_readiness_and_liveness(agent: Agent, client: Client) -> None:
    probes = {
        "readinessProbe": {"exec": {"command": ["sh", "-c", "test -f ${TMPDIR:-/tmp}/ready"]}, "periodSeconds": 1},
        "livenessProbe": {
            "exec": {"command": ["sh", "-c", "test ! -f ${TMPDIR:-/tmp}/ill"]},
            "periodSeconds": 1,
            "failureThreshold": 1,
        },
    }
    script = "cd ${TMPDIR:-/tmp}; sleep 0.5; touch ready; sleep 2; touch ill; sleep 1000"
    await run(client, pod("p", "sh", "-c", script, container=probes), in_phase("Running"))
    found = await reach(client, "p", ready)
    assert found["status"]["containerStatuses"][0]["restartCount"] == 0
    await reach(client, "p", lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 1)
    told = dict(await reasons(client, "p"))
    assert told["Killing"] == "Container c failed liveness probe, will be restarted"


async def test_a_new_image_restarts_the_container(agent: Agent, client: Client) -> None:
    found = await run(client, pod("p", "sleep", "1000", container={"image": "example.com/unknown"}), ready)
    assert codes(found) == ["DL-IMAGE-UNKNOWN"]
    patch = {"spec": {"containers": [{"name": "c", "image": "alpine"}]}}
    await client.patch(POD, "p", "default", patch, type="strategic")
    found = await reach(client, "p", lambda p: p["status"]["containerStatuses"][0]["restartCount"] == 1 and ready(p))
    assert found["status"]["containerStatuses"][0]["image"] == "alpine"
    assert codes(found) == []


async def test_hooks(agent: Agent, client: Client, tmp_path: Path) -> None:
    hooks = {
        "lifecycle": {
            "postStart": {"exec": {"command": ["sh", "-c", "echo started > /danlu-test/out/started"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /danlu-test/out/stopping"]}},
        },
        "volumeMounts": [{"name": "out", "mountPath": "/danlu-test/out"}],
    }
    folder = tmp_path / "out"
    folder.mkdir()
    volume = {"name": "out", "hostPath": {"path": str(folder)}}
    await run(client, pod("p", "sleep", "1000", container=hooks, volumes=[volume]), ready)
    assert (folder / "started").read_text() == "started\n"
    await client.delete(POD, "p", "default")
    await gone(client, "p")
    assert (folder / "stopping").read_text() == "stopping\n"


async def test_what_does_not_fit_is_refused(agent: Agent, client: Client) -> None:
    large = {"resources": {"requests": {"cpu": "3"}}}
    found = await run(client, pod("p", "true", container=large), in_phase("Failed"))
    assert found["status"]["reason"] == "OutOfcpu"
    assert found["status"]["message"] == (
        "Pod was rejected: Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"
    )


async def test_eviction(agent: Agent, client: Client) -> None:
    await run(client, pod("p", "sleep", "1000"), ready)
    agent.evictions.settings = NodeSettings(evict_memory_below=1 << 60)
    await agent.evictions.check()
    found = await reach(client, "p", in_phase("Failed"))
    assert found["status"]["reason"] == "Evicted"
    assert found["status"]["message"].startswith("The node was low on resource: memory. Threshold quantity: ")
    node = await client.get(NODE, NODE_NAME)
    assert conditions.is_true(node["status"]["conditions"], eviction.MEMORY_PRESSURE)
    agent.evictions.settings = QUICK


async def test_pods_go_on_without_the_node_and_are_taken_up_again(cluster: Cluster, client: Client) -> None:
    first = make_agent(cluster)
    await first.start()
    stays = await run(client, pod("stays", "sleep", "1000", container={"image": "example.com/unknown"}), ready)
    await run(client, pod("ends", "sh", "-c", "sleep 0.5; exit 4", restartPolicy="Never"), ready)
    dropped = await run(client, pod("dropped", "sleep", "1000"), ready)
    pids = {name: first.pods.workers[p["metadata"]["uid"]].running[0].pid for name, p in (("s", stays), ("d", dropped))}
    await first.stop(kill_pods=False)
    assert start_time(pids["s"])
    await client.delete(POD, "dropped", "default", grace=0)
    second = make_agent(cluster)
    await second.start()
    found = await reach(client, "ends", in_phase("Failed"))
    assert state(found)["terminated"]["exitCode"] == 4
    for _ in range(500):
        if stays["metadata"]["uid"] in second.pods.workers and second.pods.workers[stays["metadata"]["uid"]].running:
            break
        await asyncio.sleep(0.01)
    assert second.pods.workers[stays["metadata"]["uid"]].running[0].pid == pids["s"]
    again = await client.get(POD, "stays", "default")
    assert again["status"]["containerStatuses"] == stays["status"]["containerStatuses"]
    assert again["status"]["podIP"] == stays["status"]["podIP"]
    assert codes(again) == codes(stays) == ["DL-IMAGE-UNKNOWN"]
    for _ in range(500):
        if not start_time(pids["d"]):
            break
        await asyncio.sleep(0.01)
    assert not start_time(pids["d"])
    await second.stop(kill_pods=True)
    assert not start_time(pids["s"])


async def test_pods_that_were_stopped_with_the_node_start_again_with_it(cluster: Cluster, client: Client) -> None:
    """That they were stopped is nobody's failure: it is not counted, and no policy forbids the new start."""
    agent = make_agent(cluster)
    await agent.start()
    polite = "trap 'exit 0' TERM; echo begun; while :; do sleep 0.1; done"
    once = "echo x >> /v/runs; test $(wc -l < /v/runs) -gt 1 && exec sleep 1000; exit 3"
    kept = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    before = [
        await run(client, pod("always", "sleep", "1000"), ready),
        await run(client, pod("never", "sleep", "1000", restartPolicy="Never"), ready),
        await run(client, pod("polite", "sh", "-c", polite, restartPolicy="OnFailure"), ready),
        await run(
            client,
            pod("second", "sh", "-c", once, container=kept, volumes=[{"name": "v", "emptyDir": {}}]),
            lambda p: ready(p) and p["status"]["containerStatuses"][0]["restartCount"] == 1,
        ),
    ]
    for _ in range(2):
        await agent.stop(kill_pods=True)
        for pod_before in before:
            name = pod_before["metadata"]["name"]
            assert in_phase("Running")(await client.get(POD, name, "default"))
        agent = make_agent(cluster)
        await agent.start()
        for number, pod_before in enumerate(before):
            old = pod_before["status"]["containerStatuses"][0]
            found = await reach(
                client,
                pod_before["metadata"]["name"],
                lambda p, old=old: (
                    ready(p) and p["status"]["containerStatuses"][0]["containerID"] != old["containerID"]
                ),  # type: ignore[misc]
            )
            new = found["status"]["containerStatuses"][0]
            assert (new["restartCount"], new["lastState"]) == (old["restartCount"], old["lastState"])
            before[number] = found
    assert text_of(agent, before[2]) == "begun\n" * 3
    await agent.stop(kill_pods=True)


async def test_a_pod_deleted_while_the_node_was_down_is_ended(cluster: Cluster, client: Client) -> None:
    first = make_agent(cluster)
    await first.start()
    found = await run(client, pod("p", "sleep", "1000"), ready)
    pid = first.pods.workers[found["metadata"]["uid"]].running[0].pid
    await first.stop(kill_pods=False)
    await client.delete(POD, "p", "default")
    assert start_time(pid)
    second = make_agent(cluster)
    await second.start()
    await gone(client, "p")
    assert not start_time(pid)
    await second.stop()
