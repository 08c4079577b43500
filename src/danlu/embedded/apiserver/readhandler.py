"""get and list."""

from __future__ import annotations

from collections.abc import Sequence

from danlu.embedded.apiserver import answerencoder
from danlu.embedded.apiserver.listselectors import matcher
from danlu.embedded.apiserver.pagination import PageRequest, after, asked_by
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import ServedKind
from danlu.embedded.storage import Store, Stored
from danlu.errors import BadRequest, Expired, NotFound, Timeout
from danlu.meta.fields import FieldError, forbidden, invalid_error, not_supported, quoted
from danlu.meta.integers import decimal
from danlu.meta.kind import Kind


async def get(call: Call) -> Response:
    served = call.served
    assert served is not None
    if served.computed is not None:
        return answerencoder.one(call, served, (await served.computed(call))[0])
    check_version(call, call.server.store)
    stored = call.server.store.get(served.key, call.namespace, call.name)
    if stored is None:
        raise NotFound.of(served.kind.plural, call.name, served.kind.group)
    return answerencoder.one(call, served, stored)


async def list_(call: Call) -> Response:
    served = call.served
    assert served is not None
    store = call.server.store
    check_options(call)
    matches = matcher(call, served)
    if served.computed is not None:
        return answerencoder.many_made(call, served, await served.computed(call))
    limit = call.query.integer("limit") or 0
    asked, token, begin, kept = asked_by(call, served), call.query.get("continue"), 0, False
    if token:
        found, revision, begin, kept = _continued(call, served, asked, token)
    else:
        try:
            check_version(call, store)
        except BadRequest as error:
            raise BadRequest(f"invalid resource version: {error.message}") from None
        found, revision = store.scan(served.key, call.namespace or None), store.revision
    if matches is not None and not kept:
        found, begin = [stored for stored in found[begin:] if matches(stored)], 0
    left = len(found) - begin - limit
    if limit <= 0 or left <= 0:
        return answerencoder.many(call, served, found[begin:] if begin else found, revision)
    if not kept:
        call.server.snapshots.keep(asked, revision, found)
    page = found[begin : begin + limit]
    go_on = call.server.page_tokens.write(asked, revision, page[-1])
    return answerencoder.many(call, served, page, revision, go_on, None if matches else left)


def _continued(
    call: Call, served: ServedKind, asked: PageRequest, token: str
) -> tuple[Sequence[Stored], int, int, bool]:
    """(the whole list, its revision, where to go on in it, whether it is one that was kept)"""
    store = call.server.store
    revision, place = call.server.page_tokens.read(asked, token)
    if call.query.get("resourceVersion") not in ("", "0"):
        raise BadRequest("specifying resource version is not allowed when using continue")
    if revision < 0:
        found: Sequence[Stored] = store.scan(served.key, call.namespace or None)
        return found, store.revision, after(found, place), False
    kept = call.server.snapshots.find(asked, revision)
    if kept is None:
        raise call.server.page_tokens.expired(asked, place)
    return kept, revision, after(kept, place), True


def parse_version(text: str) -> int:
    if text and not (text.isascii() and text.isdecimal()):
        why = f"strconv.ParseUint: parsing {quoted(text)}: invalid syntax"
        raise BadRequest(f"resourceVersion: Invalid value: {quoted(text)}: {why}")
    return decimal(text or "0")


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
