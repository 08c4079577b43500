"""What the API server asks a node's streams for, in the words of the Kubernetes API: options of logs, exec, attach."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = False
    tail: int | None = None  # lines
    since_ns: int | None = None  # Unix time
    limit_bytes: int | None = None
    timestamps: bool = False
    stream: str = ""  # "", "stdout" or "stderr"


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """Which of a program's streams are wanted, and whether it has a terminal."""

    stdin: bool = False
    stdout: bool = False
    stderr: bool = False
    tty: bool = False
