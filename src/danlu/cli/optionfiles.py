"""Files that options name."""

from __future__ import annotations

from pathlib import Path

from danlu.cli.failures import UsageError


def read(option: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{option} {file}: {error.strerror}") from None
