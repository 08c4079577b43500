"""Lists that are read in pages: the `continue` token, and the moment that all pages of one list are taken from.

A token is of use to whoever got it, for the list that it was made for: it is authenticated together with the caller,
the resource, the namespace and the selectors, and so cannot be made up, altered, or carried to another list.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from danlu.errors import BadRequest, Expired
from danlu.meta.fields import quoted

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Call
    from danlu.embedded.apiserver.served import ServedKind
    from danlu.embedded.storage import Stored

SNAPSHOT_SECONDS = 300.0  # as long as etcd keeps what was overwritten
# What is kept is references, and costs nothing while the objects stay as they are. This is what it can come to when
# all of them are overwritten meanwhile.
MOST_BYTES = 256 * 1024 * 1024
MOST_BYTES_OF_ONE = 128 * 1024 * 1024  # of one caller
MOST_OF_ONE = 32  # lists that one caller reads at the same time
_REFERENCE_BYTES = 8
_ENTRY_BYTES = 1024
_MAC_BYTES = 16
_VERSION = "meta.k8s.io/v1"
_INCONSISTENT = -1  # in place of a revision: go on with what is there now
_NOT_BASE64 = re.compile(r"[^A-Za-z0-9_-]")
INVALID = "invalid continue token: continue key is not valid"


class PageRequest(NamedTuple):
    """What a list is of, and who reads it."""

    user: str
    uid: str
    resource: str
    namespace: str
    labels: str
    fields: str


def asked_by(call: Call, served: ServedKind) -> PageRequest:
    query = call.query
    selectors = query.get("labelSelector"), query.get("fieldSelector")
    return PageRequest(call.user.name, call.user.uid, served.key, call.namespace, *selectors)


class ContinueTokens:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def write(self, asked: PageRequest, revision: int, last: Stored) -> str:
        return self._encoded(asked, revision, f"{last.namespace}/{last.name}")

    def read(self, asked: PageRequest, text: str) -> tuple[int, tuple[str, str]]:
        """(revision, namespace and name of the last object that was read). Raises BadRequest, in Kubernetes' words."""
        odd = _NOT_BASE64.search(text)
        if odd is not None:
            raise BadRequest(f"{INVALID}: illegal base64 data at input byte {odd.start()}")
        try:
            body = orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, ValueError):
            raise BadRequest(INVALID) from None
        version, revision, start, mac = _fields(body)
        if version != _VERSION:
            raise BadRequest(f"{INVALID}: server does not recognize this encoded version {version}")
        if not isinstance(revision, int) or revision == 0:
            raise BadRequest(f"{INVALID}: incorrect encoded start resourceVersion (version {_VERSION})")
        if not start or not isinstance(start, str):
            raise BadRequest(f"{INVALID}: encoded start key empty (version {_VERSION})")
        place = start.removesuffix("\0")
        if not hmac.compare_digest(self._mac(asked, revision, place), str(mac).encode()):
            raise BadRequest(f"{INVALID}: {quoted(place)}")
        namespace, _, name = place.partition("/")
        return revision, (namespace, name)

    def expired(self, asked: PageRequest, place: tuple[str, str]) -> Expired:
        error = Expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list.",
        )
        error.metadata["continue"] = self._encoded(asked, _INCONSISTENT, "/".join(place))
        return error

    def _encoded(self, asked: PageRequest, revision: int, place: str) -> str:
        mac = self._mac(asked, revision, place).decode()
        body = orjson.dumps({"v": _VERSION, "rv": revision, "start": place + "\0", "mac": mac})
        return base64.urlsafe_b64encode(body).rstrip(b"=").decode()

    def _mac(self, asked: PageRequest, revision: int, place: str) -> bytes:
        message = orjson.dumps([*asked, str(revision), place])
        return base64.urlsafe_b64encode(hmac.digest(self._key, message, "sha256")[:_MAC_BYTES])


def _fields(body: Any) -> tuple[Any, Any, Any, Any]:
    if not isinstance(body, dict):
        raise BadRequest(INVALID)
    return body.get("v", ""), body.get("rv", 0), body.get("start", ""), body.get("mac", "")


class _Snapshot(NamedTuple):
    at: float
    size: int
    found: Sequence[Stored]


class Snapshots:
    """Lists of which pages are still to be read, by caller. Nobody's lists push out those of somebody with less."""

    def __init__(self) -> None:
        self._callers: dict[tuple[str, str], OrderedDict[tuple[PageRequest, int], _Snapshot]] = {}
        self._sizes: dict[tuple[str, str], int] = {}

    def keep(self, asked: PageRequest, revision: int, found: Sequence[Stored]) -> None:
        """One that is too large is not kept: its second page is told to go on without it."""
        size = _ENTRY_BYTES + sum(len(stored.raw) + _REFERENCE_BYTES for stored in found)
        if size > MOST_BYTES_OF_ONE:
            return
        caller = (asked.user, asked.uid)
        self._put(caller, (asked, revision), _Snapshot(time.monotonic(), size, found))
        self._drop_old()
        while caller in self._callers and (
            len(self._callers[caller]) > MOST_OF_ONE or self._sizes[caller] > MOST_BYTES_OF_ONE
        ):
            self._drop_oldest(caller)
        while sum(self._sizes.values()) > MOST_BYTES:
            self._drop_oldest(max(self._sizes, key=lambda one: self._sizes[one]))

    def find(self, asked: PageRequest, revision: int) -> Sequence[Stored] | None:
        self._drop_old()
        caller, key = (asked.user, asked.uid), (asked, revision)
        own = self._callers.get(caller)
        kept = own.get(key) if own is not None else None
        if kept is None:
            return None
        self._put(caller, key, kept._replace(at=time.monotonic()))
        return kept.found

    def _put(self, caller: tuple[str, str], key: tuple[PageRequest, int], snapshot: _Snapshot) -> None:
        own = self._callers.setdefault(caller, OrderedDict())
        before = own.pop(key, None)
        own[key] = snapshot
        self._sizes[caller] = self._sizes.get(caller, 0) + snapshot.size - (before.size if before else 0)

    def _drop_oldest(self, caller: tuple[str, str]) -> None:
        own = self._callers[caller]
        _, dropped = own.popitem(last=False)
        self._sizes[caller] -= dropped.size
        if not own:
            del self._callers[caller], self._sizes[caller]

    def _drop_old(self) -> None:
        latest = time.monotonic() - SNAPSHOT_SECONDS
        for caller in [*self._callers]:
            while caller in self._callers and next(iter(self._callers[caller].values())).at < latest:
                self._drop_oldest(caller)


def after(found: Sequence[Stored], place: tuple[str, str]) -> int:
    """The index of the first object behind this one; lists are sorted by namespace and name."""
    return bisect_right(found, place, key=lambda stored: (stored.namespace, stored.name))


def read_key(path: Path) -> bytes:
    """Kept with the data: a token outlives a restart, and is then told how to go on."""
    import secrets

    from danlu.embedded.apiserver.auth.certificateauthority import write_private

    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
    if len(key) < 32:
        key = secrets.token_bytes(32)
        write_private(path, key)
    return key
