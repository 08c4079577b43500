"""Golden files of job kinds: `NAME.input.yaml` is what a reconcile sees, `NAME.output.yaml` what it decides.

Input: `now`, `job` (the object), and of what is observed any of `pods`, `services`, `others`, `events`, `unbound`,
`taken_ports`, `refused` ({obj, message}), `settings`. What every pod has anyway (uid, owner, namespace) may be left
out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from danlu.diagnose import Cause, tables
from danlu.kinds._training.observation import Observed
from danlu.kinds.platform import PlatformSettings
from danlu.meta.clock import parse_time
from danlu.meta.said import CAUSES, carried
from danlu.runtime.reconcile import EventNote, Outcome, Refusal

FOLDER = Path(__file__).parent


def inputs() -> list[Path]:
    return sorted(path for path in FOLDER.glob("*/*.input.yaml") if "\njob:" in path.read_text())


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.load(path.read_text(), Loader=_Loader)
    meta = found["job"].setdefault("metadata", {})
    meta.setdefault("namespace", "default")
    meta.setdefault("uid", "11111111-2222-3333-4444-555555555555")
    return found


def observed(given: dict[str, Any]) -> Observed:
    return Observed(
        pods=[_child("Pod", pod) for pod in given.get("pods") or ()],
        services=[_child("Service", service) for service in given.get("services") or ()],
        others=given.get("others") or (),
        events=given.get("events") or (),
        unbound={name: Cause(**one) for name, one in (given.get("unbound") or {}).items()},
        taken_ports=frozenset(given.get("taken_ports") or ()),
        refused=[Refusal(**one) for one in given.get("refused") or ()],
        settings=PlatformSettings(**(given.get("settings") or {})),
    )


def outcome(decided: Outcome) -> dict[str, Any]:
    """As it is written to the output; nothing is left out but what is empty."""
    told: dict[str, Any] = {
        "apply": decided.apply,
        "delete": [f"{one['kind']}/{one['metadata']['name']}" for one in decided.delete],
        "create": [one.obj for one in decided.create],
        "create_last": [one.obj for one in decided.create_last],
        "status": decided.status,
        "status_delay_s": decided.status_delay_s or None,
        "events": [_event(one) for one in decided.events],
        "requeue_after": decided.requeue_after,
    }
    return {name: value for name, value in told.items() if value not in (None, [])}


def uncoded(decided: Outcome) -> list[str]:
    """What is said without a code."""
    status = decided.status or {}
    told = status.get("conditions") or ()
    found = [f"{one['type']}: {one['message']}" for one in told if one.get("message") and not one.get(CAUSES)]
    board = status.get("tensorboard") or {}
    if board.get("note") and not board.get(CAUSES):
        found.append(f"tensorboard: {board['note']}")
    found += [_event(note) for note in decided.events if not carried(note.message)]
    made = (one.made for one in (*decided.create, *decided.create_last) if one.made is not None)
    return [*found, *(note.code for note in made if note.code not in tables.templates())]


def text(told: dict[str, Any]) -> str:
    return yaml.dump(told, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def moment(given: dict[str, Any]) -> Any:
    return parse_time(given["now"])


def _child(kind: str, given: dict[str, Any]) -> dict[str, Any]:
    meta = {"namespace": "default", "uid": f"uid-of-{given['metadata']['name']}", **given["metadata"]}
    spec: dict[str, Any] = {"spec": {}} if kind == "Pod" else {}
    return {"apiVersion": "v1", "kind": kind, **spec, **given, "metadata": meta}


def _event(note: EventNote) -> str:
    return f"{note.type} {note.reason}: {note.message}"


class _Loader(yaml.SafeLoader):
    """Times stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Dumper(yaml.SafeDumper):
    """Nothing refers to another place in the file: each object can be read by itself."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _plain(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _plain)
_Dumper.add_multi_representer(str, _plain)  # what carries its causes
