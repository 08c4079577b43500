"""What an API server refused, for the controllers that asked: in the server's words, with what mends it."""

from __future__ import annotations

from danlu.diagnose import quotaroom
from danlu.diagnose.cause import Cause
from danlu.diagnose.reading import recognise
from danlu.meta.kind import Object
from danlu.meta.said import Said


def explained(message: str) -> Said:
    """The server's words, carrying the cause where it is known."""
    cause = _known(message)
    if cause is None:
        return Said(message)
    remedy = cause.remedy()
    return Said(f"{message.rstrip('. ')}; {remedy}" if remedy and "`" not in message else message, [cause.carried()])


def refused(obj: Object, message: str) -> Cause:
    """That this object could not be created."""
    kind, name = obj["kind"], obj["metadata"]["name"]
    cause = _known(message)
    told = {"kind": kind, "name": name, "message": message}
    if cause is not None:
        told["why"] = cause.carried()
    return Cause("DL-CREATE", told, f"{kind}/{name}", f"FailedCreate{kind}")


def _known(message: str) -> Cause | None:
    found = recognise(message)
    if found is None:
        return None
    code, told = found
    if code == quotaroom.QUOTA:
        told = quotaroom.with_left(told)
    # A right that is missing is the operator's here, not that of whoever reads it.
    code = "DL-RIGHT-OPERATOR" if code == "DL-RIGHT" else code
    return Cause(code, {**told, "message": message})
