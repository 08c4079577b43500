"""`danlu why`: whom it asks about, in which language, and what it prints."""

from __future__ import annotations

import pytest

from danlu.cli.failures import CommandError
from danlu.cli.language import language, speaking
from danlu.cli.work.why import kind_called, told
from danlu.diagnose import Cause


@pytest.mark.parametrize(
    ("word", "kind"),
    [("pytorchjob", "PyTorchJob"), ("po", "Pod"), ("pvc", "PersistentVolumeClaim"), ("Notebook", "Notebook")],
)
def test_kinds_are_called_as_kubectl_calls_them(word: str, kind: str) -> None:
    assert kind_called(word).kind == kind


def test_a_kind_that_is_not_known() -> None:
    with pytest.raises(CommandError, match="kubectl api-resources"):
        kind_called("unicorn")


def test_the_language_is_that_of_the_system() -> None:
    assert language({"LANG": "zh_CN.UTF-8"}) == "zh"
    assert language({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}) == "en"
    assert language({}) == "en"


def test_each_cause_stands_with_its_code_and_what_mends_it() -> None:
    cause = Cause("DL-OOM", {"pod": "p", "container": "main", "limit": "220Mi"})
    with speaking("zh"):
        first, second = told("Pod/p", [cause])
    assert "DL-OOM" in first
    assert "内存用尽，被系统终止（上限 220Mi）" in first
    assert second.strip().startswith("→ 提高内存上限")
    assert [*told("Pod/p", [])] == ["Pod/p: nothing keeps it"]
