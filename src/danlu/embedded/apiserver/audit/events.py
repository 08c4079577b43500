"""What a line of the audit log says: an audit.k8s.io/v1 Event, made by the log's thread from what a request left."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import orjson

from danlu.embedded.apiserver.audit.auditpolicy import API_VERSION, METADATA, REQUEST_RESPONSE, Recording
from danlu.embedded.apiserver.negotiation import DuplicateKeys, decode_body
from danlu.embedded.apiserver.target import PAGE, Target
from danlu.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from danlu.embedded.apiserver.request import Query, User

LONGEST_USER_AGENT, CUT_OFF = 1024, "...TRUNCATED"  # as Kubernetes
_PATH_LETTERS = "/:@!$&'()*+,;=~"
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")


@dataclass(slots=True)
class Record:
    """What is known of a request, stage by stage. Nothing here is changed once it is handed to the log."""

    id: str
    recording: Recording
    received: int  # nanoseconds since 1970
    target: Target
    method: str
    query: Query
    headers: Mapping[str, str]
    user: User  # who asked; without a name: that is not known
    acting_as: User | None = None
    source: str = ""
    body: bytes = b""
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Stage:
    name: str
    at: int
    record: Record
    code: int = 0  # 0: nothing is answered yet
    answer: bytes = b""  # JSON

    @property
    def size(self) -> int:
        return 1024 + len(self.record.body) + len(self.answer)


def line(stage: Stage) -> bytes:
    record, target = stage.record, stage.record.target
    level = record.recording.level
    event: dict[str, Any] = {
        "kind": "Event",
        "apiVersion": API_VERSION,
        "level": level,
        "auditID": record.id,
        "stage": stage.name,
        "requestURI": _uri(record),
        "verb": target.verb,
        "user": _user(record.user) if record.user.name else {},
    }
    if record.acting_as is not None:
        event["impersonatedUser"] = _user(record.acting_as)
    if record.source:
        event["sourceIPs"] = [record.source]
    agent = record.headers.get("user-agent", "")
    if agent:
        event["userAgent"] = agent if len(agent) <= LONGEST_USER_AGENT else agent[:LONGEST_USER_AGENT] + CUT_OFF
    sent = _sent(record) if stage.code else None
    if target.scope != PAGE:
        event["objectRef"] = _reference(target, sent)
    if stage.code:
        _add_answer(event, stage, sent)
    event["requestReceivedTimestamp"], event["stageTimestamp"] = _time(record.received), _time(stage.at)
    if record.annotations and stage.code:
        event["annotations"] = record.annotations
    return orjson.dumps(event) + b"\n"


def _add_answer(event: dict[str, Any], stage: Stage, sent: Any) -> None:
    record = stage.record
    status: dict[str, Any] = {"metadata": {}, "code": stage.code}
    if stage.code >= 400 and stage.answer:
        said = _parsed(stage.answer)
        if isinstance(said, dict) and said.get("kind") == "Status":
            status = {"metadata": {}, **{key: said[key] for key in ("status", "message", "reason") if key in said}}
            status["code"] = stage.code
    event["responseStatus"] = status
    if record.recording.level == METADATA or record.target.scope == PAGE:
        return
    if sent is not None:
        event["requestObject"] = _bare(sent) if record.recording.without_managed_fields else sent
    if record.recording.level == REQUEST_RESPONSE and stage.answer:
        # Ours, and on one line: it goes in as it is, however large.
        plain = not record.recording.without_managed_fields and b"\n" not in stage.answer
        answer: Any = orjson.Fragment(stage.answer) if plain else _parsed(stage.answer)
        event["responseObject"] = answer if plain else _bare(answer)


def _uri(record: Record) -> str:
    pairs = record.query.pairs()
    return quote(record.target.path, safe=_PATH_LETTERS) + (f"?{urlencode(pairs)}" if pairs else "")


def _user(user: User) -> dict[str, Any]:
    told: dict[str, Any] = {"username": user.name}
    if user.uid:
        told["uid"] = user.uid
    if user.groups:
        told["groups"] = list(user.groups)
    if user.extra:
        told["extra"] = user.extra
    return told


def _reference(target: Target, sent: Any) -> dict[str, str]:
    meta = sent.get("metadata") if isinstance(sent, dict) else None
    meta = meta if isinstance(meta, dict) else {}
    told = {
        "resource": target.resource,
        "namespace": target.namespace or str(meta.get("namespace") or ""),
        "name": target.name or str(meta.get("name") or ""),
        "uid": str(meta.get("uid") or ""),
        "apiGroup": target.group,
        "apiVersion": target.version,
        "resourceVersion": str(meta.get("resourceVersion") or ""),
        "subresource": target.subresource,
    }
    return {key: value for key, value in told.items() if value}


def _sent(record: Record) -> Any:
    """The request's object. What cannot be read is no object: it was refused, and its text could be anything."""
    if not record.body or record.target.scope == PAGE or record.target.subresource == "proxy":
        return None
    media = record.headers.get("content-type", "").split(";")[0].strip().lower()
    media = {"application/apply-patch+yaml": "application/yaml"}.get(media, media)
    if media in _PATCHES:
        media = "application/json"
    try:
        return decode_body(media, record.body, DuplicateKeys([], "Ignore"), patch=record.method == "PATCH")
    except ApiError:
        return None


def _parsed(text: bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        return None


def _bare(obj: Any) -> Any:
    """Without managedFields: of the object, of a list's items, of a table's rows."""
    if not isinstance(obj, dict):
        return obj
    meta = obj.get("metadata")
    if isinstance(meta, dict) and "managedFields" in meta:
        obj = {**obj, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}
    if isinstance(obj.get("items"), list):
        obj = {**obj, "items": [_bare(item) for item in obj["items"]]}
    if obj.get("kind") == "Table" and isinstance(obj.get("rows"), list):
        rows = [{**row, "object": _bare(row["object"])} if "object" in row else row for row in obj["rows"]]
        obj = {**obj, "rows": rows}
    return obj


def _time(nanoseconds: int) -> str:
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06}Z"
