"""Why one pod does not run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.diagnose.objects import asking, ended, event, node, pod, running, unplaced, waiting

from danlu.diagnose import Evidence, explain, say
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, carried

ROOM = (
    "0/1 nodes are available: 1 Insufficient memory. preemption: 0/1 nodes are available: 1 Preemption is not helpful"
)


PYTON = 'exec: "pyton": no such file or directory'
NOTHING = Evidence()


def codes(obj: Object, evidence: Evidence = NOTHING) -> list[str]:
    return [cause.code for cause in explain(obj, evidence)]


def test_what_runs_has_no_cause() -> None:
    assert codes(running("p")) == []
    assert codes(pod(phase="Succeeded")) == []


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("0/1 nodes are available: 1 Insufficient cpu.", "DL-ROOM"),
        ('persistentvolumeclaim "mnist" not found', "DL-CLAIM-MISSING"),
        ("0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.", "DL-NODE-SELECTOR"),
        ("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.", "DL-CLAIM-PENDING"),
        ("something that nobody has heard of", "DL-UNSCHEDULABLE"),
    ],
)
def test_the_words_of_the_scheduler(message: str, code: str) -> None:
    assert codes(unplaced(message)) == [code]


def test_what_can_never_fit_is_not_told_to_wait_and_has_numbers() -> None:
    big = unplaced(ROOM, **asking(memory="500Gi"))
    [cause] = explain(big, Evidence(nodes=[node(memory="24689152Ki"), node("m", memory="8Gi")]))
    assert (cause.code, cause.severity) == ("DL-NEVER-FITS", "error")
    assert (cause.params["asked"], cause.params["most"], cause.params["resource"]) == ("500Gi", "23.5Gi", "memory")
    assert "500Gi" in cause.sentence("zh")
    assert "23.5Gi" in cause.sentence("zh")
    assert "等待没有用" in cause.remedy("zh")


def test_what_would_fit_an_empty_node_waits() -> None:
    [cause] = explain(unplaced(ROOM, **asking(memory="16Gi")), Evidence(nodes=[node(memory="24Gi")]))
    assert (cause.code, cause.severity, cause.params["asked"]) == ("DL-ROOM", "waiting", "memory 16Gi")
    assert "preemption" not in cause.sentence()


def test_a_node_that_the_pod_may_not_use_does_not_count() -> None:
    tainted = {**node("big", memory="1Ti"), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}}
    big = unplaced(ROOM, **asking(memory="500Gi"))
    assert codes(big, Evidence(nodes=[tainted, node(memory="24Gi")])) == ["DL-NEVER-FITS"]


def test_a_device_that_no_node_has() -> None:
    gpu = unplaced("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", **asking(**{"nvidia.com/gpu": "1"}))
    [cause] = explain(gpu, Evidence(nodes=[node(cpu="2")]))
    assert cause.code == "DL-NO-DEVICE"
    assert "CPU" in cause.remedy()


def test_out_of_memory_names_the_limit_and_no_line_of_the_log() -> None:
    limited: dict[str, Any] = {"containers": [{"name": "main", "resources": {"limits": {"memory": "220Mi"}}}]}
    [cause] = explain(ended(137, "OOMKilled", "step 1\nMiB 220", **limited))
    assert cause.code == "DL-OOM"
    assert cause.sentence() == "Container main of pod p ran out of memory and was killed (limit 220Mi)"
    assert cause.sentence("zh") == "p 的容器 main 内存用尽，被系统终止（上限 220Mi）"


@pytest.mark.parametrize(
    "broken",
    [
        ended(128, "StartError", 'failed to create task: exec: "pyton": executable file not found in $PATH: unknown'),
        ended(127, "StartError", 'exec: "pyton": executable file not found in $PATH'),
        waiting("RunContainerError", 'failed to start: exec: "pyton": executable file not found in $PATH: unknown'),
        waiting(
            "CrashLoopBackOff",
            "back-off 10s",
            lastState={
                "terminated": {"exitCode": 127, "reason": "StartError", "message": PYTON}
            },
        ),
    ],
)  # fmt: skip
def test_a_mistyped_command_is_named_in_both_languages(broken: Object) -> None:
    [cause] = explain(broken)
    assert (cause.code, cause.params["command"]) == ("DL-COMMAND", "pyton")
    assert "找不到要运行的命令 “pyton”" in cause.sentence("zh")
    assert "检查运行命令的拼写" in cause.remedy("zh")


def test_a_command_that_a_shell_does_not_find() -> None:
    [cause] = explain(ended(127, "Error", "sh: 1: pyton: not found"))
    assert cause.code == "DL-COMMAND"
    assert "pyton: not found" in cause.sentence()


def test_exit_codes_signals_and_crashes() -> None:
    [cause] = explain(ended(1, "Error", "Traceback\nModuleNotFoundError: no"))
    assert (cause.code, cause.params["line"]) == ("DL-EXIT", "ModuleNotFoundError: no")
    assert codes(ended(137)) == ["DL-KILLED"]
    crash = waiting("CrashLoopBackOff", "back-off", lastState={"terminated": {"exitCode": 1, "message": "bad data"}})
    [cause] = explain(crash)
    assert (cause.code, cause.params["line"], cause.reason) == ("DL-CRASH", "bad data", "CrashLoopBackOff")


def test_images_claims_and_configuration() -> None:
    assert codes(waiting("ImagePullBackOff", 'Back-off pulling image "nope:1"')) == ["DL-IMAGE"]
    [cause] = explain(waiting("CreateContainerConfigError", 'configmap "unknown-map" not found'))
    assert (cause.code, cause.params["kind"], cause.params["name"]) == ("DL-CONFIG", "configmap", "unknown-map")
    uses: dict[str, Any] = {"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}
    claim = {"metadata": {"name": "c"}, "spec": {"storageClassName": "gone"}, "status": {"phase": "Pending"}}
    [cause] = explain(
        unplaced("pod has unbound immediate PersistentVolumeClaims", **uses), Evidence(claims=[claim], classes=[])
    )
    assert (cause.code, cause.params["class"]) == ("DL-CLAIM-NO-CLASS", "gone")


def test_a_volume_that_cannot_be_mounted_is_told_by_an_event() -> None:
    silent = pod(
        spec={"nodeName": "n"},
        containerStatuses=[{"name": "main", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    )
    told = event(silent, "FailedMount", 'MountVolume.SetUp failed for volume "v" : secret "hidden" not found')
    assert codes(silent, Evidence(events=[told])) == ["DL-CONFIG"]
    assert codes(silent, Evidence(events=[event(silent, "FailedMount", "MountVolume.SetUp failed: timed out")])) == [
        "DL-MOUNT"
    ]
    assert codes(silent) == ["DL-STARTING"]


def test_an_image_that_was_replaced_is_a_cause_of_its_own() -> None:
    """It used to stand only among the detailed events."""
    up = running("p")
    note = say("DL-IMAGE-UNKNOWN", image="me/own:1", environment="default")
    told = event(up, "ImageSubstituted", note, annotations={ANNOTATION: json.dumps(carried(note))})
    [cause] = explain(up, Evidence(events=[told, told]))
    assert (cause.code, cause.severity, cause.params["image"]) == ("DL-IMAGE-UNKNOWN", "warning", "me/own:1")
    assert cause.sentence("zh").startswith("镜像 me/own:1 不在目录中")


@pytest.mark.parametrize(
    "annotation",
    ["no json", "7", '["x"]', '[{"code": 1}]', '[{"code": "DL-ROOM", "params": [1]}]',
     '[{"code": "DL-GROUP-NEVER", "params": {"why": {"code": "DL-NONE", "params": 3}, "nodes": {"a": 1}}}]'],
)  # fmt: skip
def test_what_somebody_wrote_into_the_annotation_does_no_harm(annotation: str) -> None:
    written = unplaced("0/1 nodes are available: 1 Insufficient cpu.")
    written["metadata"]["annotations"] = {ANNOTATION: annotation}
    assert [cause.text("zh") for cause in explain(written)]


def test_the_own_scheduler_is_not_read_but_believed() -> None:
    why = say("DL-QUEUE-SPENT", queue="small", left="1", limit="4", resource="nvidia.com/gpu", pod="p", asked="2")
    short = unplaced(f"0/1 nodes are available: {why}.")
    short["metadata"]["annotations"] = {ANNOTATION: json.dumps(carried(why))}
    [cause] = explain(short)
    assert cause.code == "DL-QUEUE-SPENT", "over quota, the nodes are not to blame"
    assert cause.sentence("zh") == "队列 small 的 nvidia.com/gpu 配额 4 还剩 1，p 需要 2"


def test_a_replaced_image_is_told_by_the_pod_itself_and_with_a_program_that_is_not_there() -> None:
    image = {"code": "DL-IMAGE-UNKNOWN", "params": {"image": "nope:1", "environment": "default"}}
    noted = {"danlu.dev/causes": json.dumps([image])}
    fine = running("p")
    fine["metadata"]["annotations"] = noted
    assert [cause.code for cause in explain(fine)] == ["DL-IMAGE-UNKNOWN"]
    lost = ended(127, "StartError", 'exec: "pyton": executable file not found in $PATH')
    lost["metadata"]["annotations"] = noted
    [cause] = explain(lost)
    assert cause.code == "DL-COMMAND", "the image is told with it, not beside it"
    assert "镜像 nope:1 不在目录中" in cause.sentence("zh")
    assert cause.remedy().startswith("`danlu images` lists the catalogue, or check the spelling")
    del lost["metadata"]["annotations"]
    assert explain(lost)[0].remedy().startswith("check the spelling")


def test_an_image_of_which_nothing_is_known_and_no_command() -> None:
    said = {"code": "DL-NO-COMMAND", "params": {"image": "nope:1"}}
    stuck = waiting("CreateContainerError", "no command specified: …")
    stuck["metadata"]["annotations"] = {"danlu.dev/causes": json.dumps([said])}
    [cause] = explain(stuck)
    assert cause.text("zh") == "没有运行命令：这里不了解镜像 nope:1；请填写运行命令"


def test_a_node_that_danlu_was_started_without() -> None:
    gone = node("second")
    assert [cause.code for cause in explain(gone)] == ["DL-NODE-LOST"]
    gone["metadata"]["annotations"] = {"danlu.dev/causes": '[{"code": "DL-NODE-ABSENT", "params": {}}]'}
    assert [cause.code for cause in explain(gone)] == ["DL-NODE-ABSENT"]
