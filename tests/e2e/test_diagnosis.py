"""What once was said wrongly or in one place only: the same cause in `danlu why`, in the condition and in the event, in
both languages. The cases stand in diagnosis.yaml; the pages show what is found here."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.running import Danlu

from danlu.diagnose import Cause, causes_in, render
from danlu.diagnose.reading import recognise
from danlu.meta import conditions
from danlu.meta.said import CAUSES

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

TABLE: dict[str, Any] = yaml.safe_load(Path(__file__).with_name("diagnosis.yaml").read_text())


@pytest.fixture(scope="module")
def danlu(make_danlu: Callable[..., Danlu]) -> Danlu:
    danlu = make_danlu("--nodes", "small:cpu=7,memory=24Gi")
    danlu.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(TABLE["before"]))
    danlu.kubectl("wait", "--for=condition=Ready", "-n", "team", "pod/other", "--timeout=60s")
    danlu.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all([case["object"] for case in TABLE["cases"]]))
    return danlu


def bare(causes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is the same in `danlu why --json` and in a condition."""
    return [{"code": one["code"], "params": one.get("params") or {}} for one in causes]


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_a_cause_is_the_same_everywhere(danlu: Danlu, case: dict[str, Any]) -> None:
    meta, kind, why = case["object"]["metadata"], case["object"]["kind"], bare(case["why"])
    where, what = ("-n", meta["namespace"]), f"{kind.lower()}/{meta['name']}"

    def asked(*words: str) -> str:
        return danlu.run(sys.executable, "-m", "danlu", "why", what, *where, *words).stdout

    def found() -> list[dict[str, Any]]:
        return bare(json.loads(asked("--json")))

    danlu.wait(f"danlu why {what} to say {why}", lambda: found() == why)
    for language in ("en", "zh"):
        said = asked("--language", language)
        assert case[language] in said
        assert all(one["code"] in said for one in why)
    wanted = {CAUSES: why, **case["condition"]}
    condition = _condition(danlu, what, where, wanted)
    assert (condition["status"], bare(condition[CAUSES])) == (wanted["status"], bare(wanted[CAUSES]))
    assert [one.get("lines") for one in condition[CAUSES]] == [one.get("lines") for one in wanted[CAUSES]]
    assert case["en"].lower() in condition["message"].lower()
    assert _status(danlu, what, where).get("phase") == case.get("phase")
    assert case["zh"] in render(condition[CAUSES], condition["message"], "zh")
    danlu.wait(f"the event about {what}", lambda: case["event"]["codes"] in _events(danlu, meta, kind, case["event"]))


def _condition(danlu: Danlu, what: str, where: tuple[str, ...], wanted: dict[str, Any]) -> dict[str, Any]:
    """Once it says that."""

    def look() -> dict[str, Any] | None:
        condition = conditions.get(_status(danlu, what, where).get("conditions"), wanted["type"])
        return condition if condition and bare(condition[CAUSES]) == bare(wanted[CAUSES]) else None

    found = danlu.wait(f"the condition {wanted['type']} of {what}", look)
    assert isinstance(found, dict)
    return found


def _status(danlu: Danlu, what: str, where: tuple[str, ...] = ()) -> dict[str, Any]:
    return json.loads(danlu.kubectl("get", what, *where, "-o", "json")).get("status") or {}


def _events(danlu: Danlu, meta: dict[str, Any], kind: str, wanted: dict[str, Any]) -> list[list[str]]:
    """The codes that the annotations of its events carry; how many ran meanwhile depends on when it was told."""
    fields = f"involvedObject.name={meta['name']},involvedObject.kind={kind},reason={wanted['reason']}"
    text = danlu.kubectl("get", "events", "-n", meta["namespace"], "--field-selector", fields, "-o", "json")
    told = ([cause.code for cause in causes_in(event)] for event in json.loads(text)["items"])
    return [[code for code in codes if code != "DL-PARTIAL"] for codes in told]


def test_memory_that_ran_out_is_told_where_people_look(danlu: Danlu) -> None:
    told = "ran out of memory and was killed (limit 50Mi); raise resources.limits.memory, or use smaller batches"
    danlu.wait("kubectl describe to tell of it", lambda: told in danlu.kubectl("describe", "pytorchjob", "hungry"))
    assert told in danlu.kubectl("events", "--for", "pytorchjob/hungry")


def test_a_job_says_of_its_tensorboard_what_that_says(danlu: Danlu) -> None:
    template = {"spec": {"containers": [{"name": "pytorch", "image": "python", "command": ["sleep", "600"]}]}}
    body = {
        "apiVersion": "batch.tensorstack.dev/v1beta1",
        "kind": "PyTorchTrainingJob",
        "metadata": {"name": "watched"},
        "spec": {
            "replicaSpecs": [{"type": "worker", "replicas": 1, "template": template}],
            "tensorboardSpec": {"logDir": {"pvc": [{"name": "nowhere"}]}},
        },
    }
    danlu.kubectl("create", "-f", "-", stdin=json.dumps(body))

    def board() -> dict[str, Any]:
        return _status(danlu, "pytorchtrainingjob/watched").get("tensorboard") or {}

    danlu.wait("the job to say it", lambda: [cause.code for cause in causes_in(board())] == ["DL-NEEDS"])
    assert render(board()[CAUSES], board()["note"], "zh").startswith('本命名空间中没有 PersistentVolumeClaim "nowhere"')


@pytest.mark.parametrize("case", TABLE["refused"], ids=lambda case: case["name"])
def test_what_the_server_refuses_names_the_field(danlu: Danlu, case: dict[str, Any]) -> None:
    said = danlu.fails("apply", "-f", "-", stdin=json.dumps(case["object"]))
    assert f"* {case['message']}" in said.splitlines()
    code, params = recognise(said) or ("", {})
    assert {"code": code, "params": params} == case["cause"]
    assert (Cause(code, params).sentence(), Cause(code, params).sentence("zh")) == (case["en"], case["zh"])
