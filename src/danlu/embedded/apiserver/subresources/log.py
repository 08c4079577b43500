"""`pods/NAME/log`: what a container printed."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from danlu.embedded.apiserver.request import Call, Response, StreamResponse
from danlu.embedded.apiserver.served import Subresource
from danlu.embedded.apiserver.subresources.nodestreams import container_of, node_of, pod_of
from danlu.embedded.streamoptions import LogOptions
from danlu.errors import BadRequest, MethodNotAllowed
from danlu.meta.clock import parse_time
from danlu.meta.fields import FieldError, forbidden, invalid, invalid_error, not_supported
from danlu.meta.kind import Kind
from danlu.meta.wellknown import POD

OPTIONS = Kind("", "v1", "PodLogOptions", "pods")
STREAMS = {"All": "", "Stdout": "stdout", "Stderr": "stderr"}


async def handle(call: Call) -> Response | StreamResponse:
    if call.method not in ("GET", "HEAD"):
        raise MethodNotAllowed()
    since_ns = _since(call)
    tail, limit = call.query.integer("tailLines"), call.query.integer("limitBytes")
    stream = call.query.get("stream") or "All"
    problems = _problems(call, tail, limit, stream)
    if problems:
        raise invalid_error(OPTIONS, call.name, problems)
    pod = pod_of(call)
    container = container_of(pod, call.query.get("container"))
    if not pod["spec"].get("nodeName"):  # nothing has run yet: an empty log
        return Response.text("")
    chunks = await node_of(call, pod).logs(
        pod,
        container,
        LogOptions(
            follow=call.query.flag("follow"),
            tail=tail,
            since_ns=since_ns,
            limit_bytes=limit,
            timestamps=call.query.flag("timestamps"),
            stream=STREAMS[stream],
        ),
        previous=call.query.flag("previous"),
    )
    if call.method == "HEAD":
        return Response.text("")
    return StreamResponse(_sent(chunks), content_type="text/plain")


async def _sent(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk


def _since(call: Call) -> int | None:
    seconds = call.query.integer("sinceSeconds")
    text = call.query.get("sinceTime")
    if seconds is not None:
        return time.time_ns() - seconds * 1_000_000_000
    if not text:
        return None
    try:
        moment = parse_time(text)
        return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
    except (ValueError, OverflowError):
        raise BadRequest(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}"') from None


def _problems(call: Call, tail: int | None, limit: int | None, stream: str) -> list[FieldError]:
    problems = []
    seconds = call.query.integer("sinceSeconds")
    if tail is not None and tail < 0:
        problems.append(invalid("tailLines", tail, "must be greater than or equal to 0"))
    if limit is not None and limit < 1:
        problems.append(invalid("limitBytes", limit, "must be greater than 0"))
    if seconds is not None and call.query.get("sinceTime"):
        problems.append(forbidden("", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif seconds is not None and seconds < 1:
        problems.append(invalid("sinceSeconds", seconds, "must be greater than 0"))
    if stream not in STREAMS:
        problems.append(not_supported("stream", stream, STREAMS))
    elif stream != "All" and tail is not None:
        problems.append(forbidden("", "`tailLines` and specific `stream` are mutually exclusive for now"))
    return problems


LOG = Subresource(verbs=("get",), kind=POD, handle=handle)
