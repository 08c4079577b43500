"""What Kubernetes' own components say (scheduler, kubelet, quota, API server), read by the one table of regular
expressions. Nothing here reads a sentence that Danlu wrote: those carry a code (`danlu.meta.said`)."""

from __future__ import annotations

import re

from danlu.diagnose import tables
from danlu.diagnose.contract import LONGEST, NESTED_MESSAGES
from danlu.meta.said import tail_of

_HOLE = re.compile(r"([$@])(\d|&)")  # of what the table says in Chinese


def recognise(message: str) -> tuple[str, dict[str, str]] | None:
    """The code of the cause and what the sentence tells of it; None: not known."""
    tail = tail_of(message)
    if tail is not None and tail[0] in tables.templates():
        return tail
    read = message[:LONGEST]
    for sign in tables.signs():
        if found := sign.pattern.search(read):
            told = {name: value for name, value in zip(sign.params, found.groups(), strict=True) if value}
            return sign.code, told
    return None


def without_preemption(message: str) -> str:
    """That nothing can be taken from others either is of no use to people."""
    return message.partition(" preemption: ")[0].rstrip(". ")


def in_chinese(message: str) -> str | None:
    """None: not known. Lines after the first are a program's own and stay."""
    first, *rest = message.split("\n")
    words = _line(first, NESTED_MESSAGES) if len(first) <= LONGEST else None
    return None if words is None else "\n".join([words, *rest])


def reason_in_chinese(reason: str) -> str | None:
    known = tables.reasons()
    return known.get(reason) or known.get(reason.partition("Job")[2])  # Kubeflow's begin with the kind: TFJobCreated


def _line(line: str, inner: int) -> str | None:
    """`inner`: so many messages within the message."""
    for pattern, words in tables.sentences():
        found = pattern.search(line)
        if found is None:
            continue

        def part(hole: re.Match[str], found: re.Match[str] = found) -> str:
            if hole[2] == "&":
                return reason_in_chinese(line) or line
            text = found[int(hole[2])] or ""
            return (_line(text, inner - 1) or text) if hole[1] == "@" and text and inner else text

        return _HOLE.sub(part, words).rstrip()
    return None
