"""Paths inside volumes: relative, and never upwards. The node checks again when it mounts."""

from __future__ import annotations

from danlu.meta.fields import FieldError, invalid

MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"


def no_backsteps(path: str, field: str) -> list[FieldError]:
    if ".." in path and ".." in path.split("/"):
        return [invalid(field, path, "must not contain '..'")]
    return []


def descending(path: str, field: str) -> list[FieldError]:
    errors = [invalid(field, path, "must be a relative path")] if path.startswith("/") else []
    return errors + no_backsteps(path, field)


def not_reserved(path: str, field: str) -> list[FieldError]:
    """A file in a volume whose own bookkeeping uses names that start with `..`."""
    errors = descending(path, field)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(field, path, "must not start with '..'"))
    return errors


def mode_errors(mode: int | None, field: str) -> list[FieldError]:
    return [invalid(field, mode, MODE_TEXT)] if mode is not None and not 0 <= mode <= 0o777 else []
