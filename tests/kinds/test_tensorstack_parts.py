"""The small decisions behind Notebook, TensorBoard and TensorStack's jobs, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from danlu.kinds import references
from danlu.kinds._training.tensorstack.dialect import restartable, split
from danlu.kinds._training.tensorstack.trainingpods import is_enabled
from danlu.kinds.notebook.activity import judge
from danlu.kinds.tensorboard import logdir

NOW = datetime(2026, 1, 2, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("total", "weights", "counts"),
    [(4, [3, 1], [3, 1]), (5, [1, 1], [3, 2]), (4, [1], [4]), (3, [0, 0], [2, 1]), (2, [1, 0], [2, 0])],
)
def test_elastic_replicas_are_split_by_weight(total: int, weights: list[int], counts: list[int]) -> None:
    assert split(total, weights) == counts


def test_older_spelling_of_enabled() -> None:
    assert is_enabled({"enable": True})
    assert not is_enabled({"enabled": False, "enable": True})
    assert not is_enabled(None)


def test_exit_codes_that_ask_for_a_restart() -> None:
    assert [code for code in (0, 1, 2, 126, 127, 128, 129, 130, 137, 138, 139, 143, 255) if restartable(code)] == [
        130, 137, 138, 143,
    ]  # fmt: skip


def activity(
    status: str, kernels: Sequence[Any] = (), terminals: Sequence[Any] = (), ssh: Any = None, cores: float = 0.01
) -> Any:
    return judge({"last_activity": status}, kernels, terminals, ssh, cores, NOW)


def test_the_latest_of_all_that_a_notebook_tells_counts() -> None:
    found = activity(
        "2026-01-02T01:00:00Z",
        [{"last_activity": "2026-01-02T02:00:00Z", "execution_state": "idle"}],
        [{"last_activity": "2026-01-02T03:00:00.5Z"}],
    )
    assert found.last == datetime(2026, 1, 2, 3, 0, 0, 500_000, tzinfo=UTC)
    assert not found.busy


def test_a_silent_kernel_that_computes_is_busy() -> None:
    assert activity("2026-01-02T01:00:00Z", [{"execution_state": "busy"}]).busy


def test_a_silent_script_in_a_terminal_is_seen_by_what_it_uses() -> None:
    found = activity("2026-01-02T01:00:00Z", terminals=[{"last_activity": "2026-01-01T00:00:00Z"}], cores=0.9)
    assert found.busy
    assert found.last == NOW, "from now on it may be quiet for an hour"


def test_ssh_counts_as_activity() -> None:
    found = activity("2026-01-02T01:00:00Z", ssh={"lastActivity": "2026-01-02T04:00:00+00:00", "connections": 0})
    assert found.last == found.ssh == datetime(2026, 1, 2, 4, tzinfo=UTC)
    assert activity("2026-01-02T01:00:00Z", ssh={"connections": 1}).busy


def test_where_logs_lie_in_either_spelling() -> None:
    old = logdir.of({"trainingLogFilesets": ["t9k://pvc/mnist/log/", "t9k://minio/secret/bucket/x"]})
    assert old.claims == [("mnist", "log")]
    assert old.unsupported == ["t9k://minio/secret/bucket/x"]
    assert logdir.arguments(old) == ["--logdir=/logs/mnist/log"]
    new = logdir.of({"logDir": {"pvc": [{"name": "a", "subPath": ["x", "y/z"]}, {"name": "b"}]}})
    assert logdir.arguments(new) == ["--logdir_spec=a/x:/logs/a/x,a/y/z:/logs/a/y/z,b:/logs/b"]


def test_what_a_pod_needs_and_does_not_bring() -> None:
    spec = {
        "volumes": [
            {"name": "a", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "b", "secret": {"secretName": "keys"}},
            {"name": "c", "configMap": {"name": "maybe", "optional": True}},
            {"name": "d", "projected": {"sources": [{"configMap": {"name": "settings"}}]}},
        ],
        "containers": [
            {"name": "x", "env": [{"name": "T", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "t"}}}],
             "envFrom": [{"secretRef": {"name": "more"}}]},
        ],
    }  # fmt: skip
    assert [str(one) for one in references.of_pod(spec)] == [
        'PersistentVolumeClaim "data"', 'Secret "keys"', 'ConfigMap "settings"', 'Secret "more"',
    ]  # fmt: skip
