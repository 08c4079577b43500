"""Patterns as Go has them, in schemas (`pattern`), in CEL (`matches`) and in our own tables of what Kubernetes says
(`danlu.diagnose`): RE2, whose time is linear in the text.

Whoever may define a kind chooses the pattern and whoever writes an object the text, which refusals quote: an engine
that backtracks (Python's) could be kept busy for years by either. What RE2 does not have (look-around, back-references)
is refused in Go's words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Protocol

from danlu.meta.textcache import cached

MEMORY = 4 * 1024 * 1024  # bytes that one compiled pattern may take

_GO_WORDS = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_ANY_BYTE = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # RE2 has it for single bytes; Go does not


class PatternError(ValueError):
    """The pattern is none that Go would take."""


class Pattern(Protocol):
    """What is used of a compiled pattern."""

    def search(self, text: str) -> Any:
        """Anywhere in the text, as Go's MatchString. None, or a match as Python's own."""

    def finditer(self, text: str) -> Iterator[Any]: ...


def compile_once(pattern: str) -> Pattern:
    """For patterns that whoever asks keeps. Raises PatternError."""
    # When the first pattern comes: most clusters have none, and a start need not wait for it.
    import re2

    if _ANY_BYTE.search(pattern):
        raise PatternError("error parsing regexp: invalid escape sequence: `\\C`")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        compiled: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        raise PatternError(_worded(error.args[0])) from None
    except UnicodeEncodeError:
        raise PatternError("error parsing regexp: invalid UTF-8") from None
    return compiled


compile_go = cached(256)(compile_once)
"""For patterns that come again and again. Raises PatternError."""


def _worded(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    what, _, where = text.partition(": ")
    return f"error parsing regexp: {_GO_WORDS.get(what, what)}: `{where}`"
