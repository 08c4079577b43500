"""What was found damaged, one file each under `quarantine/` of the data directory: nothing is thrown away.

Files, not a table: they must outlive the database that was damaged. `danlu status` counts them, `danlu repair` shows
them, mends what can be mended and drops them when the owner says so.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from danlu.embedded.storage.records import Key, Row

OBJECT, HISTORY, LOSS, FILE = "object", "history", "loss", "file"


@dataclass(slots=True)
class Version:
    """A row as it was stored, so that what is encrypted stays encrypted here, too."""

    revision: int
    change: str
    object: str  # base64

    @classmethod
    def of(cls, row: Row) -> Version:
        return cls(row.revision, str(row.change), base64.b64encode(_bytes(row.object)).decode())

    @property
    def content(self) -> bytes:
        return base64.b64decode(self.object)


@dataclass(slots=True)
class Finding:
    """One damage: an object, an old version of one, writes that are gone, or a file."""

    id: str
    kind: str  # OBJECT, HISTORY, LOSS, FILE
    reason: str  # one sentence for people
    found: str = ""  # when
    resource: str = ""
    namespace: str = ""
    name: str = ""
    damaged: Version | None = None
    previous: Version | None = None  # the newest version before it that holds
    lost: list[dict[str, Any]] = field(default_factory=list)  # writes that are gone, as far as they are known
    count: int = 0  # how many they are
    path: str = ""  # where a damaged file lies now

    @property
    def key(self) -> Key:
        return self.resource, self.namespace, self.name

    @property
    def what(self) -> str:
        if self.kind == FILE:
            return self.path
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.resource} {place}{self.name}".strip() or "the store"


class Quarantine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def add(self, finding: Finding) -> None:
        """Durable when this returns: the row is taken out of the database after it."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        finding.found = finding.found or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        path = self._path(finding.id)
        partial = path.with_suffix(".new")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(asdict(finding), file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(self.folder)

    def findings(self) -> list[Finding]:
        found = []
        for path in sorted(self.folder.glob("*.json")):
            try:
                found.append(_finding(json.loads(path.read_bytes())))
            except (OSError, ValueError, TypeError, AttributeError):
                found.append(Finding(path.stem, FILE, "this record of a damage is damaged itself", path=str(path)))
        return sorted(found, key=lambda one: (one.found, one.id))

    def get(self, id: str) -> Finding | None:
        return next((one for one in self.findings() if one.id == id), None)

    def drop(self, id: str) -> None:
        self._path(id).unlink(missing_ok=True)

    def keep_file(self, path: Path) -> Path:
        """Moves a damaged file here; returns where it lies now."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = self.folder / f"{path.name}.{time.strftime('%Y%m%d-%H%M%S')}.damaged"
        path.replace(target)
        return target

    def _path(self, id: str) -> Path:
        return self.folder / f"{id}.json"


def object_id(revision: int) -> str:
    return f"r{revision}"


def sync_folder(folder: Path) -> None:
    """Makes renames in it durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _finding(said: dict[str, Any]) -> Finding:
    finding = Finding(**said)
    for name in ("damaged", "previous"):
        version = getattr(finding, name)
        if version is not None:
            version = Version(**version)
            try:
                base64.b64decode(version.object, validate=True)
            except binascii.Error as error:
                raise ValueError(str(error)) from error
            setattr(finding, name, version)
    return finding


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode(errors="replace")
