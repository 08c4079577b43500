"""`Said`: a sentence for people that carries its codes and parameters, so that no program has to read it.

It is a plain string to everybody else: comparing, sorting and writing it as JSON are those of its text. Who stores it
(`conditions.set`, the event recorder) stores what it carries beside it, under `CAUSES` or in the annotation of that
name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import orjson

ANNOTATION = "danlu.dev/causes"
"""Of an event, or of a pod that has no node: the same list as JSON."""

CAUSES = "causes"
"""Of a condition: a list of {code, params}, without params where there are none. The last may have `lines`: so many
lines at the end of the message are a program's own, and are shown as they are."""


TAIL = re.compile(r" ?\[(DL-[A-Z0-9-]+)((?: \w+=[^\s\[\]]+)*)\]")
"""What a sentence ends with that an API server says for us (a rule of a CRD, a policy): it can carry nothing else.

No bracket within, so that what begins as a tail is never gone through twice: users' values stand in such sentences.
"""


class Said(str):
    causes: tuple[dict[str, Any], ...]

    def __new__(cls, text: str, causes: Iterable[dict[str, Any]] = ()) -> Said:
        made = super().__new__(cls, text)
        made.causes = tuple(causes)
        return made


def written(message: str) -> str | None:
    """What a message carries, as the annotation holds it; None where it carries nothing."""
    causes = carried(message)
    return orjson.dumps(causes).decode() if causes else None


def carried(message: str) -> list[dict[str, Any]]:
    """What a message carries; nothing where it is a plain text."""
    return [*message.causes] if isinstance(message, Said) else []


def tailed(message: str) -> str:
    """The sentence with its code and parameters at the end: `… [DL-TOO-MANY-REPLICAS most=4096]`."""
    for cause in carried(message)[:1]:
        params = "".join(f" {name}={value}" for name, value in (cause.get("params") or {}).items())
        return f"{message} [{cause['code']}{params}]"
    return message


def tail_of(message: str) -> tuple[str, dict[str, str]] | None:
    """Code and parameters that a sentence ends with."""
    found = TAIL.search(message)
    return (found[1], dict(part.split("=", 1) for part in found[2].split())) if found else None
