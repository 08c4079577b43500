"""Go's regular expressions (RE2 syntax) in terms of Python's.

The two differ in few places that schemas use: `$` and `\\z` mean the very end, `\\d \\w \\s` are ASCII, classes may be
written `[[:alpha:]]`, `\\pL`. What RE2 does not have (look-around, back-references) is refused, as Go refuses it.
"""

from __future__ import annotations

import functools
import re

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t\n\v\f\r ",
    "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_UNICODE = {  # the common ranges only: enough for names in schemas
    "L": "A-Za-zªµºÀ-ÖØ-öø-ʯͰ-ͽͿ-҃Ҋ-֏א-ת぀-ヿ一-鿿가-힣",
    "N": "0-9²³¹¼-¾٠-٩",
    "Lu": "A-ZÀ-ÖØ-Þ",
    "Ll": "a-zß-öø-ÿ",
}
_POSIX_CLASS = re.compile(r"\[:(\^?)([a-z]+):\]")
_UNICODE_CLASS = re.compile(r"[pP](?:\{\^?([A-Za-z]+)\}|([A-Z]))")
_FORBIDDEN = ("(?=", "(?!", "(?<=", "(?<!", "(?#", "(?(", "(?P=", "(?>")


class PatternError(ValueError):
    """The pattern is none that Go would take."""


@functools.lru_cache(maxsize=1024)
def compile_go(pattern: str) -> re.Pattern[str]:
    """Raises PatternError. Match with `.search`, as Go's MatchString does."""
    try:
        return re.compile(_translate(pattern), re.ASCII)
    except (re.error, OverflowError, RecursionError) as reason:
        raise PatternError(f"error parsing regexp: {reason}: `{pattern}`") from None


def _translate(pattern: str) -> str:
    out: list[str] = []
    index, size, in_class = 0, len(pattern), False
    while index < size:
        letter = pattern[index]
        if letter == "\\":
            text, index = _escape(pattern, index, in_class=in_class)
            out.append(text)
            continue
        if in_class:
            posix = _POSIX_CLASS.match(pattern, index) if letter == "[" else None
            if posix is not None and posix[2] in _POSIX:
                out.append(_POSIX[posix[2]])
                index = posix.end()
                continue
            if letter == "]":
                in_class = False
            out.append("\\[" if letter == "[" else letter)
        elif letter == "[":
            in_class = True
            opening = "[^" if pattern.startswith("[^", index) else "["
            index += len(opening)
            out.append(opening)
            if pattern.startswith("]", index):
                out.append("\\]")
                index += 1
            continue
        elif letter == "$":
            out.append(r"\Z")
        else:
            if letter == "(" and (bad := next((f for f in _FORBIDDEN if pattern.startswith(f, index)), None)):
                raise PatternError(f"error parsing regexp: invalid or unsupported Perl syntax: `{bad}`")
            if pattern.startswith("(?<", index):
                out.append("(?P<")
                index += 3
                continue
            out.append(letter)
        index += 1
    return "".join(out)


def _escape(pattern: str, index: int, *, in_class: bool) -> tuple[str, int]:
    follower = pattern[index + 1 : index + 2]
    if not follower:
        raise PatternError("error parsing regexp: trailing backslash at end of expression: ``")
    if follower == "z":
        return r"\Z", index + 2
    if follower == "Z" or (follower.isdigit() and follower != "0"):
        raise PatternError(f"error parsing regexp: invalid escape sequence: `\\{follower}`")
    if follower == "Q":
        end = pattern.find("\\E", index + 2)
        literal = pattern[index + 2 :] if end < 0 else pattern[index + 2 : end]
        return re.escape(literal), len(pattern) if end < 0 else end + 2
    if follower in "pP":
        found = _UNICODE_CLASS.match(pattern, index + 1)
        letters = _UNICODE.get(found[1] or found[2]) if found else None
        if found is None or letters is None:
            raise PatternError(f"error parsing regexp: invalid character class range: `{pattern[index : index + 4]}`")
        if in_class:
            return letters, found.end()
        return f"[{'^' if follower == 'P' else ''}{letters}]", found.end()
    if follower == "x" and pattern.startswith("{", index + 2):
        end = pattern.find("}", index)
        return re.escape(chr(int(pattern[index + 3 : end], 16))), end + 1
    return pattern[index : index + 2], index + 2
