""".dockerignore: which paths of the context are not there for a build. The last rule that fits a path decides."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

LARGEST = 1 << 20


class IgnoreRules:
    def __init__(self, text: str = "") -> None:
        self._rules: list[tuple[re.Pattern[str], bool]] = []  # pattern, whether it leaves out
        for line in text.removeprefix("\ufeff").splitlines():
            if line.startswith("#") or not line.strip():
                continue
            rule = line.strip()
            leaves_out = not rule.startswith("!")
            rule = posixpath.normpath(rule.removeprefix("!").strip()).lstrip("/")
            if rule not in ("", "."):
                self._rules.append((pattern(rule), leaves_out))
        self.has_exceptions = not all(leaves_out for _, leaves_out in self._rules)

    def leaves_out(self, path: str) -> bool:
        """`path` is relative to the context, without a slash at its end. A folder's rule is that of all in it."""
        out = False
        above = [path[:at] for at, letter in enumerate(path) if letter == "/"]
        for rule, leaves_out in self._rules:
            if out != leaves_out and any(rule.fullmatch(one) for one in (path, *above)):
                out = leaves_out
        return out


def of_build(context: Path, dockerfile: Path) -> IgnoreRules:
    """`NAME.dockerignore` beside the Dockerfile goes before the context's own. Raises OSError, UnicodeDecodeError."""
    for path in (dockerfile.with_name(f"{dockerfile.name}.dockerignore"), context / ".dockerignore"):
        try:
            with path.open("rb") as file:
                return IgnoreRules(file.read(LARGEST).decode())
        except (FileNotFoundError, NotADirectoryError):
            continue
    return IgnoreRules()


def pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(_regex(text), re.DOTALL)
    except re.error:  # a range of letters that is none
        return re.compile(re.escape(text))


def _regex(pattern: str) -> str:
    """Go's filepath.Match, and `**` for any number of folders."""
    found, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        at += 1
        if pattern.startswith("**/", at - 1):
            found += "(?:.*/)?"
            at += 2
        elif pattern.startswith("**", at - 1):
            found += ".*"
            at += 1
        elif letter == "*":
            found += "[^/]*"
        elif letter == "?":
            found += "[^/]"
        elif letter == "\\" and at < len(pattern):
            found += re.escape(pattern[at])
            at += 1
        elif letter == "[" and "]" in pattern[at + 1 :]:
            end = pattern.index("]", at + 1)
            inner = pattern[at:end].replace("\\", "\\\\").replace("[", "\\[")
            found += f"[{'^' + inner[1:] if inner[:1] in '^!' else inner}]"
            at = end + 1
        else:
            found += re.escape(letter)
    return found
