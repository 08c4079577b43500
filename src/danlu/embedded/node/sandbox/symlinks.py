"""A path as something that has that root would follow it: links are looked up component by component, one that begins
with a slash begins at the root, and `..` never leads out of it. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable

MOST_LINKS = 40  # as the kernel's own


class TooManyLinks(OSError):
    """The links of a path lead in a circle, or nearly."""


def follow(path: str, leads_to: Callable[[list[str]], str | None]) -> list[str]:
    """The components of the path without links; what is missing stays as it is written. `leads_to` says what a link
    holds; None for all that is no link."""
    at: list[str] = []
    rest, links = path.split("/")[::-1], 0
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        if part == "..":
            at = at[:-1]
            continue
        target = leads_to([*at, part])
        if target is None:
            at.append(part)
            continue
        links += 1
        if links > MOST_LINKS:
            raise TooManyLinks(path)
        at = [] if target.startswith("/") else at
        rest += target.split("/")[::-1]
    return at
