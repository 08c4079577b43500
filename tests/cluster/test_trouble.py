"""What a job says on a real cluster when something that it needs is not there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cluster.conftest import Space
from tests.kinds.jobs import job, role

pytestmark = pytest.mark.timeout(240)
CLAIM = {
    "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "homeless"},
    "spec": {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "no-such", "resources": {"requests": {"storage": "1Mi"}},
    },
}  # fmt: skip
CASES: dict[str, tuple[dict[str, Any], str, str]] = {  # what a pod asks for, what is said of it, what mends it
    "image": (
        {"container": {"image": "example.invalid/no/such:image"}},
        "example.invalid/no/such:image",
        "`kubectl replace --force -f FILE`",
    ),
    "claim": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "nothing"}}]},
        '"nothing" not found',
        "`kubectl get pvc`",
    ),
    "class": (
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "homeless"}}]},
        'StorageClass "no-such", which does not exist',
        "`kubectl get storageclass`",
    ),
    "mount": (  # told by an event only
        {
            "volumes": [{"name": "v", "secret": {"secretName": "nothing"}}],
            "container": {"volumeMounts": [{"name": "v", "mountPath": "/v"}]},  # else a kubelet leaves it alone
        },
        'secret "nothing" not found',
        "",
    ),
    "secret": (
        {"container": {"envFrom": [{"secretRef": {"name": "nothing"}}]}},
        'secret "nothing" not found',
        "",
    ),
}


def test_the_missing_thing_is_named(space: Space) -> None:
    space.danlu.kubectl("create", "-f", "-", stdin=json.dumps(CLAIM))
    whats = {}
    for name, (pod, _, _) in CASES.items():
        roles: dict[str, Any] = {"Master": role("PyTorchJob", "print('never')", **pod)}
        whats[name] = space.submit(job("PyTorchJob", name, roles))
    for name, (_, words, remedy) in CASES.items():
        what = whats[name]

        def told(what: str = what, words: str = words, remedy: str = remedy) -> bool:
            message = str((space.conditions(what).get("Blocked") or {}).get("message"))
            return words in message and remedy in message

        def warned(what: str = what, words: str = words, remedy: str = remedy) -> bool:
            named = f"involvedObject.kind=PyTorchJob,involvedObject.name={what.partition('/')[2]},type=Warning"
            said = space.danlu.kubectl("get", "events", "--field-selector", named, "-o", "jsonpath={..message}")
            return words in said and remedy in said

        space.danlu.wait(f"a condition of {what} to say {words} and {remedy}", told)
        space.danlu.wait(f"an event of {what} to say {words} and {remedy}", warned)
        assert space.state(what) not in ("Succeeded", "Failed"), "it goes on when the missing thing comes"
