"""`serviceaccounts/NAME/token`: a TokenRequest in, the same with a signed token out."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from danlu.embedded.apiserver.auth.tokens import ServiceAccountTokens
from danlu.embedded.apiserver.bodydecoder import read_as
from danlu.embedded.apiserver.request import Call, Response
from danlu.embedded.apiserver.served import Subresource
from danlu.errors import BadRequest, Conflict, MethodNotAllowed, NotFound
from danlu.meta.clock import now_rfc3339, rfc3339
from danlu.meta.fields import invalid, invalid_error
from danlu.meta.kind import Kind, Object
from danlu.meta.schema import native

if TYPE_CHECKING:
    from danlu.embedded.storage.store import Store

TOKEN_REQUEST = Kind("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", True)
SHORTEST, LONGEST = 600, 1 << 32  # seconds
DEFAULT_SECONDS = 3600
# A pod's mounted token asks for this odd length, which marks it: it is made to last a year, for programs that read
# their token once and never again.
MARKED_SECONDS = 3607
YEAR = 365 * 24 * 3600
_BOUND_KINDS = {"Pod": "pods", "Secret": "secrets", "Node": "nodes"}


async def handle(call: Call) -> Response:
    if call.method != "POST":
        raise MethodNotAllowed()
    body = read_as(call, native("io.k8s.api.authentication.v1.TokenRequest"), TOKEN_REQUEST)
    server = call.server
    answer = request_token(server.store, server.authenticator.accounts, call.namespace, call.name, body)
    return Response.json(answer, 201)


TOKEN = Subresource(("create",), TOKEN_REQUEST, handle)


def request_token(store: Store, tokens: ServiceAccountTokens, namespace: str, name: str, request: Object) -> Object:
    meta = request.get("metadata") or {}
    for field, own in (("name", name), ("namespace", namespace)):
        stated = meta.get(field)
        if stated and stated != own:
            text = f"must match the service account {field} if specified"
            raise invalid_error(TOKEN_REQUEST, name, [invalid(f"metadata.{field}", stated, text)])
    stored = store.latest("serviceaccounts", namespace, name)
    if stored is None:
        raise NotFound.of("serviceaccounts", name)
    account = store.shared(stored)
    uid = account["metadata"]["uid"]
    if meta.get("uid") and meta["uid"] != uid:
        text = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({uid})"
        raise _conflict("TokenRequest.authentication.k8s.io", name, text)
    spec = request.get("spec") or {}
    seconds = spec.get("expirationSeconds")
    seconds = DEFAULT_SECONDS if seconds is None else seconds
    _check_seconds(seconds)
    audiences = list(spec.get("audiences") or tokens.audiences)
    reference = spec.get("boundObjectRef")
    bound = _bound_object(store, namespace, name, reference) if reference else None
    extended = (
        bound is not None
        and bound[0] == "pod"
        and seconds == MARKED_SECONDS
        and set(audiences) <= set(tokens.audiences)
    )
    token = tokens.issue(
        account,
        seconds=YEAR if extended else seconds,
        audiences=audiences,
        bound=bound,
        node=_node_of(store, bound[1]) if bound and bound[0] == "pod" else None,
        warn_after=seconds if extended else None,
    )
    return {
        "kind": "TokenRequest",
        "apiVersion": TOKEN_REQUEST.api_version,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": now_rfc3339(),
        },
        "spec": {"audiences": audiences, "expirationSeconds": seconds, "boundObjectRef": reference},
        "status": {"token": token, "expirationTimestamp": rfc3339(time.time() + seconds)},
    }


def _check_seconds(seconds: int) -> None:
    text = ""
    if seconds < SHORTEST:
        text = "may not specify a duration less than 10 minutes"
    elif seconds > LONGEST:
        text = "may not specify a duration larger than 2^32 seconds"
    if text:
        raise invalid_error(TOKEN_REQUEST, "", [invalid("spec.expirationSeconds", seconds, text)])


def _bound_object(store: Store, namespace: str, account: str, reference: Object) -> tuple[str, Object]:
    kind, name, uid = reference.get("kind", ""), reference.get("name", ""), reference.get("uid", "")
    group, slash, version = (reference.get("apiVersion") or "").rpartition("/")
    if group or kind not in _BOUND_KINDS:
        shown = f"{group}/{version}, Kind={kind}" if slash or version else f"/, Kind={kind}"
        raise BadRequest(f"cannot bind token to object of type {shown}")
    resource = _BOUND_KINDS[kind]
    stored = store.latest(resource, "" if kind == "Node" else namespace, name)
    if stored is None:
        raise NotFound.of(resource, name)
    obj = store.shared(stored)
    if kind == "Pod" and (obj.get("spec") or {}).get("serviceAccountName") != account:
        raise BadRequest(
            f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        )
    if uid and uid != obj["metadata"]["uid"]:
        text = (
            f"the UID in the bound object reference ({uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise _conflict(kind, name, text)
    return kind.lower(), obj


def _node_of(store: Store, pod: Object) -> Object | None:
    name = (pod.get("spec") or {}).get("nodeName")
    if not name:
        return None
    stored = store.latest("nodes", "", name)
    return store.shared(stored) if stored else {"metadata": {"name": name}}


def _conflict(resource: str, name: str, text: str) -> Conflict:
    kind, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": kind} if group else {"name": name, "kind": kind}
    return Conflict(f'Operation cannot be fulfilled on {resource} "{name}": {text}', details)
