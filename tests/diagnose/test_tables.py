"""The tables: what they recognise, and that both languages are there. The pages run the same samples."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml
from tests.house.tree import ROOT

from danlu.diagnose import Cause, render, say, tables
from danlu.diagnose.reading import in_chinese, reason_in_chinese, recognise
from danlu.meta import conditions
from danlu.meta.kind import Object
from danlu.meta.said import Said

TABLE: dict[str, Any] = yaml.safe_load((ROOT / "src/danlu/diagnose/kubernetes.yaml").read_text())
SAMPLES: dict[str, Any] = yaml.safe_load((ROOT / "tests/diagnose/sentences.yaml").read_text())


@pytest.mark.parametrize("sign", TABLE["signs"], ids=lambda sign: sign["code"])
def test_samples_are_recognised(sign: dict[str, Any]) -> None:
    for number, sample in enumerate(sign["samples"]):
        found = recognise(sample)
        assert found is not None
        assert found[0] == sign["code"]
        if not number:
            assert found[1] == sign["found"]


@pytest.mark.parametrize(("message", "chinese"), SAMPLES["chinese"].items())
def test_what_kubernetes_says_has_chinese(message: str, chinese: str) -> None:
    assert in_chinese(message) == chinese


def test_what_is_not_known_is_left_alone() -> None:
    assert recognise("quux has frobbed") is None
    assert in_chinese("quux has frobbed") is None
    assert reason_in_chinese("Frobbed") is None
    assert reason_in_chinese("TFJobRestarting") == "正在重启"


def test_every_code_is_said_in_both_languages_without_holes() -> None:
    for code, template in tables.templates().items():
        for language in tables.LANGUAGES:
            for params in ({}, dict.fromkeys(template.names, "x")):
                assert "{" not in Cause(code, params).text(language), code
                assert "[[" not in Cause(code, params).text(language), code


def test_what_is_optional_goes_with_its_parameter() -> None:
    assert (
        Cause("DL-OOM", {"pod": "p", "container": "c"}).sentence()
        == "Container c of pod p ran out of memory and was killed"
    )


def test_a_message_carries_its_cause_into_a_condition_and_back() -> None:
    inner = say("DL-SHORT-FREE", asked="8", resource="cpu", free="2")
    message = say("DL-GROUP-NO-ROOM", nodes=1, all=4, group="g", why=inner)
    assert message.startswith("0/1 nodes are available for all 4 pods of group g: 8 cpu asked at once, 2 free")
    found: list[Object] = []
    conditions.set(found, "Blocked", "True", "Unschedulable", message)
    stored = copy.deepcopy(found[0])
    assert render(stored["causes"], stored["message"], "zh").startswith(
        "1 个节点目前放不下组 g 的全部 4 个副本：共需 cpu 8，只空闲 2"
    )
    assert render(stored["causes"], stored["message"], "en") == message
    assert not conditions.set(found, "Blocked", "True", "Unschedulable", message), "the same again is no change"


def test_lines_of_a_program_stay_as_they_are() -> None:
    message = Said(
        "It failed.\nTraceback\nno data",
        [{"code": "DL-EXIT", "params": {"pod": "p", "container": "c", "exit_code": 1}, "lines": 2}],
    )
    chinese = render(message.causes, message, "zh").split("\n")
    assert chinese[0].startswith("p 的容器 c 以退出码 1 结束")
    assert chinese[1:] == ["Traceback", "no data"]


def test_a_code_that_is_not_known_is_shown_as_it_was_stored() -> None:
    assert render([{"code": "DL-OF-TOMORROW"}], "what is said", "zh") == "what is said"
