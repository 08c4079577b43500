"""What a kind's controller watches is declared, and it may read all of that."""

from __future__ import annotations

from typing import Any, cast

import pytest

from danlu.client.client import Client
from danlu.kinds import platformroles
from danlu.kinds.platform import PlatformKind, PlatformSettings
from danlu.kinds.registry import REGISTRY, T9K_SCHEDULER
from danlu.runtime import Manager, Shell

ALL = (*REGISTRY, *T9K_SCHEDULER)
CONTROLLED = [kind for kind in ALL if kind.controller is not None]
SETTINGS = [
    PlatformSettings(),
    PlatformSettings(gang="volcano"),
    PlatformSettings(shared_network=True, gang="t9k", autoscaling=False),
]


class NoClient:
    def observed_by(self, _listener: object) -> NoClient:
        return self


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.gang)
@pytest.mark.parametrize("kind", CONTROLLED, ids=lambda kind: kind.kind.singular_name)
async def test_no_more_is_watched_than_is_declared(kind: PlatformKind, settings: PlatformSettings) -> None:
    assert kind.controller is not None
    reconciler = kind.controller(settings)
    manager = Manager(cast(Client, NoClient()))
    shell: Shell[Any] = Shell(manager, reconciler)
    assert {informer.kind for informer in manager.informers} == reconciler.watched
    assert {informer.kind for informer in shell.informers} == reconciler.watched


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: settings.gang)
@pytest.mark.parametrize("kind", CONTROLLED, ids=lambda kind: kind.kind.singular_name)
def test_what_is_watched_may_be_read(kind: PlatformKind, settings: PlatformSettings) -> None:
    rules = platformroles.operator_role([kind])["rules"]
    assert kind.controller is not None
    for one in kind.controller(settings).watched:
        granted = [
            rule
            for rule in rules
            if one.group in rule["apiGroups"]
            and one.plural in rule["resources"]
            and {*platformroles.READ} <= {*rule["verbs"]}
        ]
        assert granted, f"{kind.kind.kind}: no right to watch {one.resource}"
