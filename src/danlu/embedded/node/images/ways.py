"""Which way each image went that a container asked for, for `danlu images`: `ways.json` in the store."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from danlu.embedded import private_files

FILE = "ways.json"
MOST = 500  # names; the oldest go
FRESH_S = 3600.0  # a name that goes as before is written down again after this long


@dataclass(frozen=True, slots=True)
class Way:
    image: str  # the digest of its manifest; "" when an environment stands for it
    environment: str = ""
    replaced: bool = False  # an environment that is not the image's own
    at: float = 0.0


class Ways:
    def __init__(self, root: Path) -> None:
        self._file = root / FILE
        self._known: dict[str, Way] | None = None

    def read(self) -> dict[str, Way]:
        try:
            found = json.loads(self._file.read_text())
            return {name: Way(**way) for name, way in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def went(self, name: str, *, image: str = "", environment: str = "", replaced: bool = False) -> None:
        """Written only when it is news: this is called for every container."""
        if self._known is None:
            self._known = self.read()
        way, old = Way(image, environment, replaced, time.time()), self._known.get(name)
        if old is not None and old == Way(image, environment, replaced, old.at) and way.at - old.at < FRESH_S:
            return
        self._known[name] = way
        newest = sorted(self._known.items(), key=lambda pair: -pair[1].at)[:MOST]
        self._known = dict(newest)
        text = json.dumps({key: asdict(value) for key, value in self._known.items()}, indent=1)
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        private_files.write(self._file, text.encode(), durable=False)
