"""How Kubernetes prints what may not change: a unified diff of both as indented JSON of its internal structs.

Those structs spell their fields with a capital, in an order of their own, and show the ones that are not set.
"""

from __future__ import annotations

import difflib
import json
from typing import Any

CONTEXT = 3  # lines around what differs
# Comparing takes up to the square of the lines, and the longest specs have a hundred thousand. Of longer ones the first
# difference is shown.
MOST_LINES = 500
MOST_SHOWN = 20

# Their keys are names that users chose, not fields.
_MAPS = frozenset(
    {
        "annotations",
        "capacity",
        "labels",
        "limits",
        "matchLabels",
        "nodeSelector",
        "overhead",
        "requests",
        "volumeAttributes",
    }
)
_ACRONYMS = {"dnsPolicy": "DNSPolicy", "dnsConfig": "DNSConfig", "nfs": "NFS", "csi": "CSI", "os": "OS", "tty": "TTY"}


def diff_of(old: Any, new: Any, fields: dict[str, Any] | None = None) -> str:
    """`fields`, where given, are all fields of the struct in order, with their zero values."""
    before, after = (
        json.dumps(as_struct(value, fields or dict.fromkeys(sorted(value))), indent=1, ensure_ascii=False).splitlines()
        for value in (old, new)
    )
    if max(len(before), len(after)) <= MOST_LINES:
        lines = list(difflib.unified_diff(before, after, lineterm="", n=CONTEXT))[2:]  # without the names of two files
    else:
        lines = _beginning(before, after)
    return "".join(f"{line}\n" for line in lines)


def _beginning(before: list[str], after: list[str]) -> list[str]:
    """Where the two begin to differ, without looking for what they have in common further down."""
    pairs = enumerate(zip(before, after, strict=False))
    first = next((index for index, (one, other) in pairs if one != other), min(len(before), len(after)))
    start = max(0, first - CONTEXT)
    one, other = (lines[first : first + MOST_SHOWN] for lines in (before, after))
    ahead = before[start:first]
    place = f"@@ -{start + 1},{len(ahead) + len(one)} +{start + 1},{len(ahead) + len(other)} @@"
    shown = [*(f" {line}" for line in ahead), *(f"-{line}" for line in one), *(f"+{line}" for line in other)]
    return [place, *shown, " ..."]


def as_struct(value: dict[str, Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Each field in order, those not set with their zero value.

    A zero that is a dict says the fields of a struct, one that is a list with a dict those of a list of structs.
    """
    shown: dict[str, Any] = {}
    for name, zero in fields.items():
        inner = value.get(name)
        if isinstance(zero, dict):
            shown[_go_name(name)] = as_struct(inner or {}, zero)
        elif isinstance(zero, list):
            shown[_go_name(name)] = [as_struct(each, zero[0]) for each in inner] if inner else None
        elif name in _MAPS and inner:
            shown[name[:1].upper() + name[1:]] = dict(sorted(inner.items()))
        else:
            shown[_go_name(name)] = zero if inner is None else _go_names(inner)
    return shown


def _go_name(name: str) -> str:
    if name.startswith("seLinux"):
        return f"SELinux{name[7:]}"
    return _ACRONYMS.get(name) or name[:1].upper() + name[1:]


def _go_names(value: Any) -> Any:
    if isinstance(value, dict):
        return as_struct(value, dict.fromkeys(sorted(value)))
    return [_go_names(inner) for inner in value] if isinstance(value, list) else value
