"""What a check finds, and how it is put into words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from danlu.meta.kind import Object

Check = Callable[[Object, Object], "Violation | None"]
"""(metadata, spec) of a pod or of a template."""


@dataclass(frozen=True, slots=True)
class Violation:
    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def detailed(violations: Iterable[Violation]) -> str:
    return ", ".join(map(str, violations))


def reasons(violations: Iterable[Violation]) -> str:
    return ", ".join(violation.reason for violation in violations)


def containers_of(spec: Object) -> Iterator[Object]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(field) or ()


def security_of(part: Object) -> Object:
    """The security context of a pod's spec or of a container."""
    found: Object = part.get("securityContext") or {}
    return found


def quoted(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def counted(word: str, plural: str, items: Sequence[Any]) -> str:
    return word if len(items) == 1 else plural


def containers(names: Sequence[str]) -> str:
    """`container "a"`, or `containers "a", "b"`."""
    return f"{counted('container', 'containers', names)} {quoted(names)}"


def setters(pod: bool, names: Sequence[str]) -> str:
    """Who set something: `pod`, `container "a"`, or `pod and container "a"`."""
    return " and ".join([*(["pod"] if pod else []), *([containers(names)] if names else [])])


def in_user_namespace(spec: Object) -> bool:
    return spec.get("hostUsers") is False


def is_windows(spec: Object) -> bool:
    return (spec.get("os") or {}).get("name") == "windows"
