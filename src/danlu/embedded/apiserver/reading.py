"""get and list."""

from __future__ import annotations

import base64
import binascii
import time
from collections import OrderedDict

import orjson

from danlu.embedded.apiserver import encoding
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.selecting import matcher
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Store, Stored
from danlu.errors import BadRequest, Expired, NotFound, Timeout
from danlu.meta.fields import FieldError, forbidden, invalid_error, not_supported, quoted
from danlu.meta.kind import Kind

# Lists that are read in pages go on from the same moment; this many such moments are kept, for so long.
MAX_SNAPSHOTS = 32
SNAPSHOT_SECONDS = 300.0  # as long as etcd keeps what was overwritten


class Snapshots:
    """The remaining pages of limited lists. Stored versions never change, so keeping one costs a list of references."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int, str], tuple[float, list[Stored]]] = OrderedDict()

    def keep(self, key: tuple[str, int, str], found: list[Stored]) -> None:
        self._kept[key] = (time.monotonic(), found)
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_SNAPSHOTS:
            self._kept.popitem(last=False)

    def find(self, key: tuple[str, int, str]) -> list[Stored] | None:
        while self._kept and time.monotonic() - next(iter(self._kept.values()))[0] > SNAPSHOT_SECONDS:
            self._kept.popitem(last=False)
        kept = self._kept.get(key)
        return kept[1] if kept is not None else None


async def get(call: Call) -> Response:
    served = call.served
    assert served is not None
    if served.computed is not None:
        return encoding.one(call, served, (await served.computed(call))[0])
    check_version(call, call.server.store)
    stored = call.server.store.get(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    return encoding.one(call, served, stored)


async def list_(call: Call) -> Response:
    served = call.served
    assert served is not None
    store = call.server.store
    check_options(call)
    matches = matcher(call, served)
    if served.computed is not None:
        return encoding.many_made(call, served, await served.computed(call))
    namespace = call.namespace or None
    limit = call.query.integer("limit") or 0
    token = call.query.get("continue")
    if token:
        revision, start, consistent = _read_token(token)
        found = _continued(call, served, revision, start, consistent)
        if not consistent:
            revision = store.revision
    else:
        try:
            check_version(call, store)
        except BadRequest as error:
            raise BadRequest(f"invalid resource version: {error.message}") from None
        revision = store.revision
        found = store.scan(served.key, namespace)
    if matches is not None:
        found = [stored for stored in found if matches(stored)]
    if limit <= 0 or len(found) <= limit:
        return encoding.many(call, served, found, revision)
    page, rest = found[:limit], found[limit:]
    call.server.snapshots.keep((served.key, revision, _place(page[-1])), rest)
    remaining = None if matches else len(rest)
    return encoding.many(call, served, page, revision, _write_token(revision, _place(page[-1])), remaining)


def _place(stored: Stored) -> str:
    return f"{stored.namespace}/{stored.name}"


def _write_token(revision: int, start: str) -> str:
    body = orjson.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start + "\0"})
    return base64.urlsafe_b64encode(body).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, str, bool]:
    try:
        body = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        revision, start = int(body["rv"]), str(body["start"]).rstrip("\0")
    except (ValueError, TypeError, KeyError, binascii.Error):
        raise BadRequest(
            "invalid continue token: continue key is not valid: encoded version token is not valid"
        ) from None
    return revision, start, revision >= 0


def _continued(call: Call, served: ServedKind, revision: int, start: str, consistent: bool) -> list[Stored]:
    if consistent:
        kept = call.server.snapshots.find((served.key, revision, start))
        if kept is not None:
            return kept
        expired = Expired(
            "The provided continue parameter is too old to display a consistent list result. You can start a new list "
            "without the continue parameter, or use the continue token in this response to retrieve the remainder of "
            "the results. Continuing with the provided token results in an inconsistent list - objects that were "
            "created, modified, or deleted between the time the first chunk was returned and now may show up in the "
            "list.",
        )
        expired.metadata["continue"] = _write_token(-1, start)
        raise expired
    namespace, _, name = start.partition("/")
    return [
        stored
        for stored in call.server.store.scan(served.key, call.namespace or None)
        if (stored.namespace, stored.name) > (namespace, name)
    ]


def parse_version(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        why = f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax"
        raise BadRequest(f"resourceVersion: Invalid value: {quoted(text)}: {why}")
    return int(text or "0")


def check_version(call: Call, store: Store) -> None:
    """Refuses a version that has not come yet; what is there now does for an old one, unless it must be exact."""
    text = call.query.get("resourceVersion")
    if not text:
        return
    asked = parse_version(text)
    if asked > store.revision:
        raise Timeout(
            f"Timeout: Too large resource version: {asked}, current: {store.revision}",
            {
                "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
                "retryAfterSeconds": 1,
            },
        )
    if call.query.get("resourceVersionMatch") == "Exact" and asked and asked != store.revision:
        raise Expired(f"The provided resource version is too old: {asked} ({store.revision})")


LIST_OPTIONS = Kind("meta.k8s.io", "v1", "ListOptions", "listoptions")
MATCH = "resourceVersionMatch"


def check_options(call: Call) -> None:
    """The options of a list that cannot be meant together."""
    query = call.query
    if not query:
        return
    errors: list[FieldError] = []
    match, version = query.get(MATCH), query.get("resourceVersion")
    if match and not version:
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden unless resourceVersion is provided"))
    if match and query.get("continue"):
        errors.append(forbidden(MATCH, f"{MATCH} is forbidden when continue is provided"))
    if match not in ("", "Exact", "NotOlderThan"):
        errors.append(not_supported(MATCH, match, ["Exact", "NotOlderThan", ""]))
    if match == "Exact" and version == "0":
        errors.append(forbidden(MATCH, f'{MATCH} "exact" is forbidden for resourceVersion "0"'))
    if "sendInitialEvents" in query:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise invalid_error(LIST_OPTIONS, "", errors)
