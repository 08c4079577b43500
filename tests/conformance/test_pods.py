"""The life of a pod: phases, exit codes, restarts, probes, hooks, init containers and sidecars."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.servers import free_port
from tests.conformance.conftest import Kube

pytestmark = pytest.mark.node

Make = Callable[..., dict[str, Any]]


def state(pod: dict[str, Any], name: str = "main") -> Any:
    statuses = [*pod["status"].get("initContainerStatuses", []), *pod["status"]["containerStatuses"]]
    return next(c for c in statuses if c["name"] == name)


def ended(pod: dict[str, Any], name: str = "main") -> Any:
    return state(pod, name)["state"]["terminated"]


def test_how_a_pod_ends(kube: Kube, pod: Make) -> None:
    kube.apply(
        pod("good", "true"),
        pod("bad", "exit 3"),
        pod("told", "echo because > /dev/termination-log; exit 1"),
        pod("last-words", "echo my last words; exit 1", terminationMessagePolicy="FallbackToLogsOnError"),
        pod("no-program", command=["/no/such/program"]),
        pod("late", "sleep 600", spec={"activeDeadlineSeconds": 1}),
        pod("hungry", image="python:3.12-slim",
            command=["python3", "-c", "x = bytearray(b'1') * (400 << 20); print(len(x))"],
            resources={"limits": {"memory": "64Mi"}}),
    )  # fmt: skip
    good = kube.finished("good")
    assert good["status"]["phase"] == "Succeeded"
    assert ended(good)["reason"] == "Completed"
    assert ended(good)["exitCode"] == 0
    assert {c["type"]: c["status"] for c in good["status"]["conditions"]}["Ready"] == "False"
    bad = kube.finished("bad")
    assert bad["status"]["phase"] == "Failed"
    assert (ended(bad)["exitCode"], ended(bad)["reason"]) == (3, "Error")
    assert ended(kube.finished("told"))["message"] == "because\n"
    assert ended(kube.finished("last-words"))["message"] == "my last words\n"
    no_program = kube.finished("no-program")
    assert no_program["status"]["phase"] == "Failed"
    assert ended(no_program)["exitCode"] in (127, 128)
    late = kube.finished("late")
    assert (late["status"]["phase"], late["status"]["reason"]) == ("Failed", "DeadlineExceeded")
    hungry = kube.finished("hungry")
    assert (ended(hungry)["reason"], ended(hungry)["exitCode"]) == ("OOMKilled", 137)
    shown = {line.split()[0]: line.split()[2] for line in kube("get", "pods", "--no-headers").splitlines()}
    assert shown["good"] == "Completed"
    assert shown["bad"] == "Error"
    assert shown["hungry"] == "OOMKilled"


def test_restart_policies(kube: Kube, pod: Make) -> None:
    kube.apply(
        pod("always", "echo again; exit 0", spec={"restartPolicy": "Always"}),
        pod("on-failure", "test -e /v/mark && exit 0; touch /v/mark; echo first; exit 1", spec={
            "restartPolicy": "OnFailure", "volumes": [{"name": "v", "emptyDir": {}}],
        }, volumeMounts=[{"name": "v", "mountPath": "/v"}]),
        pod("loops", "echo run $RANDOM; exit 2", spec={"restartPolicy": "Always"}),
    )  # fmt: skip
    done = kube.finished("on-failure")
    assert done["status"]["phase"] == "Succeeded"
    assert state(done)["restartCount"] == 1
    assert state(done)["lastState"]["terminated"]["exitCode"] == 1
    for name in ("always", "loops"):
        path = "{.status.containerStatuses[0].state.waiting.reason}"
        kube.until(f"pod/{name}", path, "CrashLoopBackOff")

    def held_back() -> Any:  # it may have been started again between two looks
        seen = kube.get("pod", "loops")
        return seen if "waiting" in state(seen)["state"] else None

    loops = kube.wait("the container to be held back", held_back)
    assert loops["status"]["phase"] == "Running"
    waiting = state(loops)["state"]["waiting"]
    assert waiting["message"].startswith("back-off ")
    assert "restarting failed container=main pod=loops_" in waiting["message"]
    assert state(loops)["lastState"]["terminated"]["exitCode"] == 2
    assert state(loops)["restartCount"] >= 1
    assert "run" in kube("logs", "loops", "--previous")
    assert "CrashLoopBackOff" in kube("get", "pod", "loops")
    kube.wait("the back-off event", lambda: "Back-off restarting failed container main in pod loops_" in kube("events"))
    kube("delete", "pod", "always", "loops", "--timeout=10s")  # a pod that waits has nothing to wait for


def test_what_cannot_start_says_why(kube: Kube, pod: Make) -> None:
    missing = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "none", "key": "x"}}}]}
    kube.apply(
        pod("no-config", **missing),
        pod("never-pulled", image="example.invalid/no/such:image", imagePullPolicy="Never"),
        pod("no-volume", volumeMounts=[{"name": "v", "mountPath": "/v"}],
            spec={"volumes": [{"name": "v", "secret": {"secretName": "none"}}]}),
    )  # fmt: skip
    path = "{.status.containerStatuses[0].state.waiting.reason}"
    kube.until("pod/no-config", path, "CreateContainerConfigError")
    assert 'configmap "none" not found' in kube.value(
        "pod/no-config", "{.status.containerStatuses[0].state.waiting.message}"
    )
    kube.until("pod/no-volume", path, "ContainerCreating")
    kube.wait("the mount to fail", lambda: "FailedMount" in kube("events", "--for=pod/no-volume"))
    assert 'secret "none" not found' in kube("events", "--for=pod/no-volume")
    # It goes on as soon as what was missing is there.
    kube("create", "configmap", "none", "--from-literal=x=1")
    kube("create", "secret", "generic", "none", "--from-literal=x=1")
    kube.running("no-config", "no-volume")
    kube("delete", "pod", "--all", "--now")


def test_init_containers_and_sidecars(kube: Kube, pod: Make) -> None:
    mount = [{"name": "v", "mountPath": "/v"}]

    def container(name: str, script: str, **more: Any) -> dict[str, Any]:
        return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mount, **more}

    side = container(
        "side", "echo side >> /v/order; trap 'echo end >> /v/order; exit 0' TERM; while :; do sleep 0.1; done",
        restartPolicy="Always", startupProbe={"exec": {"command": ["grep", "side", "/v/order"]}, "periodSeconds": 1},
    )  # fmt: skip
    inits = [container("one", "echo one >> /v/order"), side, container("two", "echo two >> /v/order")]
    spec = {"initContainers": inits, "volumes": [{"name": "v", "emptyDir": {}}]}
    slow = {
        "initContainers": [container("wait", "until test -e /v/go; do sleep 0.1; done")],
        "volumes": spec["volumes"],
    }
    broken = {"initContainers": [container("broken", "exit 4")], "volumes": spec["volumes"]}
    kube.apply(
        pod("order", "cat /v/order", volumeMounts=mount, spec=spec),
        pod("slow", "true", volumeMounts=mount, spec=slow),
        pod("broken", "true", volumeMounts=mount, spec=broken),
    )
    assert kube.output("order").split() == ["one", "side", "two"]
    order = kube.get("pod", "order")
    assert ended(order, "side")["exitCode"] == 0
    assert state(order, "two")["ready"] is True
    failed = kube.finished("broken")
    assert failed["status"]["phase"] == "Failed"
    assert ended(failed, "broken")["exitCode"] == 4
    assert state(failed)["state"]["waiting"]["reason"] == "PodInitializing"
    assert "Init:Error" in kube("get", "pod", "broken")
    kube.until("pod/slow", "{.status.initContainerStatuses[0].started}", "true")
    assert "Init:0/1" in kube("get", "pod", "slow")
    conditions = {c["type"]: c for c in kube.get("pod", "slow")["status"]["conditions"]}
    assert conditions["Initialized"]["status"] == "False"
    assert conditions["Initialized"]["reason"] == "ContainersNotInitialized"
    assert conditions["Initialized"]["message"] == "containers with incomplete status: [wait]"
    kube("exec", "slow", "-c", "wait", "--", "touch", "/v/go")
    kube.finished("slow")


def test_probes(kube: Kube, pod: Make) -> None:
    quick = {"periodSeconds": 1, "failureThreshold": 1}
    port = free_port()  # on the embedded node pods share the machine's ports
    kube.apply(
        pod("lives", "touch /tmp/well; sleep 600", livenessProbe={"exec": {"command": ["cat", "/tmp/well"]}, **quick,
            "initialDelaySeconds": 1}, spec={"restartPolicy": "Always"}),
        pod("ready", "sleep 600", readinessProbe={"exec": {"command": ["cat", "/tmp/ready"]}, **quick}),
        pod("starts", "sleep 1; touch /tmp/up; sleep 600", startupProbe={"exec": {"command": ["cat", "/tmp/up"]},
            "periodSeconds": 1, "failureThreshold": 30},
            livenessProbe={"exec": {"command": ["cat", "/tmp/up"]}, **quick}),
        pod("http", "cd /tmp && echo hi > index.html && exec python3 -m http.server $PORT --bind $IP",
            image="python:3.12-slim", env=[{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                                           {"name": "PORT", "value": str(port)}],
            readinessProbe={"httpGet": {"path": "/index.html", "port": port}, "periodSeconds": 1},
            livenessProbe={"tcpSocket": {"port": port}, "periodSeconds": 1, "failureThreshold": 20}),
    )  # fmt: skip
    kube.running("lives", "starts", "http")
    assert state(kube.get("pod", "starts"))["started"] is True
    assert state(kube.get("pod", "starts"))["restartCount"] == 0
    assert "0/1" in kube("get", "pod", "ready")
    reason = kube.value("pod/ready", '{.status.conditions[?(@.type=="Ready")].message}')
    assert reason == "containers with unready status: [main]"
    kube("exec", "ready", "--", "touch", "/tmp/ready")
    kube.running("ready")
    kube("exec", "ready", "--", "rm", "/tmp/ready")
    kube.until("pod/ready", '{.status.conditions[?(@.type=="Ready")].status}', "False")
    kube("exec", "lives", "--", "rm", "/tmp/well")
    kube.until("pod/lives", "{.status.containerStatuses[0].restartCount}", "1")
    events = kube("events", "--for=pod/lives")
    assert "Liveness probe failed" in events
    assert "Container main failed liveness probe, will be restarted" in events
    kube.wait("the readiness event", lambda: "Readiness probe failed" in kube("events", "--for=pod/ready"))


def test_hooks_and_grace(kube: Kube, pod: Make) -> None:
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mount = [{"name": "v", "mountPath": "/v"}]
    # The log of a pod that ends tells what its hooks did; `logs -f` reads it to the end.
    polite = pod(
        "polite", "trap 'cat /v/*; echo term; exit 0' TERM; while :; do sleep 0.1; done", volumeMounts=mount,
        lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "echo begun > /v/a"]}},
                   "preStop": {"exec": {"command": ["sh", "-c", "echo stopping > /v/b"]}}},
        spec={**volume, "terminationGracePeriodSeconds": 20},
    )  # fmt: skip
    deaf = pod(
        "deaf", "trap '' TERM; echo deaf; while :; do sleep 0.1; done", spec={"terminationGracePeriodSeconds": 1}
    )
    kube.apply(polite, deaf)
    kube.running("polite", "deaf")
    with kube.started("logs", "-f", "polite") as following:
        kube.wait("the hook", lambda: kube.run("exec", "polite", "--", "cat", "/v/a", check=False).stdout == "begun\n")
        kube("delete", "pod", "polite", "--wait=false")
        said, _ = following.communicate(timeout=30)
    assert said.split() == ["begun", "stopping", "term"]
    kube.gone("pod/polite")
    kube("delete", "pod", "deaf", "--timeout=15s")
    kube.apply(pod("forced", "trap '' TERM; while :; do sleep 0.1; done", spec={"terminationGracePeriodSeconds": 300}))
    kube.running("forced")
    kube("delete", "pod", "forced", "--wait=false")
    assert kube.value("pod/forced", "{.metadata.deletionGracePeriodSeconds}") == "300"
    assert "Terminating" in kube("get", "pod", "forced")
    kube("delete", "pod", "forced", "--force", "--grace-period=0", "--timeout=15s")


def test_a_pod_may_change_its_image_and_little_else(kube: Kube, pod: Make) -> None:
    kube.apply(pod("a", "sleep 600", spec={"restartPolicy": "Always"}))
    kube.running("a")
    problem = kube.fails("patch", "pod", "a", "-p", json.dumps({"spec": {"hostname": "other"}}))
    assert "pod updates may not change fields other than" in problem
    kube("set", "image", "pod/a", "main=busybox:1.36")
    kube.until("pod/a", "{.status.containerStatuses[0].restartCount}", "1")
    kube.running("a")


def test_ephemeral_truths_about_a_pod(kube: Kube, pod: Make) -> None:
    made = pod("who", "hostname; cat /etc/hosts; echo $HOSTNAME", spec={"hostname": "given", "subdomain": "sub"})
    plain = pod("plain", "hostname; id -u; pwd; echo $HOME; ls -d /tmp /dev/shm", workingDir="/tmp")
    kube.apply(made, plain)
    who = kube.output("who").split()
    assert who[0] == "given"
    assert f"given.sub.{kube.namespace}.svc.cluster.local" in who  # from the first moment on
    said = kube.output("plain").split()
    assert said[0] == "plain"
    assert said[-2:] == ["/dev/shm", "/tmp"]
    status = kube.get("pod", "plain")["status"]
    assert status["qosClass"] == "BestEffort"
    assert status["podIP"] == status["podIPs"][0]["ip"]
    assert status["hostIP"]


FIND_AND_STOP = """
while :; do
  for p in /proc/[0-9]*; do
    if [ "$(tr '\\0' ' ' < $p/cmdline 2>/dev/null)" = "sleep 3210 " ]; then
      kill ${p#/proc/}; echo stopped from $$$$; exit 0
    fi
  done
  sleep 0.1
done
"""


def test_whose_processes_a_container_sees(kube: Kube, pod: Make) -> None:
    sleeper = {"name": "sleeper", "image": "busybox", "command": ["sleep", "3210"]}
    looker = {"name": "looker", "image": "busybox", "command": ["sh", "-c", FIND_AND_STOP]}
    one = {"containers": [sleeper, looker], "shareProcessNamespace": True}
    kube.apply(
        pod("first", "echo $$$$; kill -TERM $$$$; kill -KILL $$$$; echo goes on; ls -d /proc/[0-9]* | wc -l"),
        pod("together", spec=one),
    )
    number, on, count = kube.output("first").splitlines()
    assert (number, on) == ("1", "goes on"), "number 1 gets no signal that it has no handler for"
    assert int(count) <= 3
    together = kube.finished("together")
    assert (ended(together, "sleeper")["exitCode"], ended(together, "looker")["exitCode"]) == (143, 0)
    assert int(kube("logs", "together", "-c", "looker").split()[-1]) > 1
