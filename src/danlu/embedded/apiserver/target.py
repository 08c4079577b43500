"""`Target`: what one request is about.

One place reads the method, the path and the query; the authorizer is asked about what it made of them, and handlers see
nothing else. So what is authorised is what is acted on, whatever a path looks like.
The reading is Kubernetes' own, escaped slashes and the old `/watch/` prefix included.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from danlu.meta.fieldselector import FieldSelectorError, parse
from danlu.meta.names import is_valid_path_segment

if TYPE_CHECKING:
    from danlu.embedded.apiserver.request import Query

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get", "HEAD": "get"}
# The resource stands at the cluster's scope, below a namespace, or where no resource ever stands.
CLUSTER, NAMESPACE, NOWHERE = "cluster", "namespace", ""
PAGE = "page"  # /version, /healthz: the request is about the path itself
NAMESPACE_SUBRESOURCES = ("status", "finalize")
PROXY = "proxy"  # the one subresource that has paths below it
_PREFIXES = ("watch", "proxy")  # older paths begin with the verb
_SLASH = re.compile(r"/|%2[fF]")


class Target(NamedTuple):
    path: str  # unescaped
    verb: str  # that rights are given for; of a page, the method
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""  # of `namespaces/NAME` it is NAME: rights in a namespace are rights to it
    name: str = ""  # in the path, or the one that a list's or watch's fieldSelector leaves
    scope: str = NOWHERE
    by_name: bool = False  # the path names the object
    below: str = ""  # of a proxy: what follows, as it was sent
    before: str = ""  # of a proxy: the path as far as that

    def fits(self, namespaced: bool) -> bool:
        """Whether objects of such a kind are found here: each has one path, and no other leads to it."""
        if namespaced:
            return self.scope == NAMESPACE or (self.scope == CLUSTER and not self.by_name)
        return self.scope == CLUSTER


def target_of(method: str, raw_path: str, query: Query) -> Target:
    path = unquote(raw_path) if "%" in raw_path else raw_path
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) >= 3:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return Target(path, method.lower(), scope=PAGE)
    verb = VERBS.get(method, "")
    prefixed = rest[0] in _PREFIXES and len(rest) > 1
    if prefixed:
        verb, rest = rest[0], rest[1:]
    namespace, scope = "", CLUSTER
    if rest[0] == "namespaces" and len(rest) > 1:
        namespace = rest[1]
        if len(rest) > 2 and rest[2] not in NAMESPACE_SUBRESOURCES:
            scope, rest = NAMESPACE, rest[2:]
    resource = rest[0]
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    by_name, before, below = bool(name), "", ""
    if subresource == PROXY:
        before, below = _split(raw_path, len(parts) - len(rest) + 3)
    elif len(rest) > 3:
        scope = NOWHERE
    odd = "" in parts[: len(parts) - max(len(rest) - 3, 0)] or path.startswith("//")
    if odd or (prefixed and (subresource or verb == PROXY)):
        scope = NOWHERE
    if not by_name and verb == "get":
        verb = "watch" if query.flag("watch") else "list"
        name = _selected(query)
    elif not by_name and verb == "delete":
        verb = "deletecollection"
    return Target(path, verb, group, version, resource, subresource, namespace, name, scope, by_name, below, before)


def _selected(query: Query) -> str:
    """The one name that the fieldSelector leaves: whoever may see that object may list and watch it alone."""
    text = query.get("fieldSelector")
    if not text:
        return ""
    try:
        name = parse(text).exact("metadata.name") or ""
    except FieldSelectorError:
        return ""  # the handler will say so
    return name if is_valid_path_segment(name) else ""


def _split(raw_path: str, segments: int) -> tuple[str, str]:
    """The path as it was sent, cut after so many segments. What follows begins with a slash."""
    slashes = [*_SLASH.finditer(raw_path)]
    if len(slashes) <= segments:
        return raw_path, ""
    cut = slashes[segments]
    return raw_path[: cut.start()], "/" + raw_path[cut.end() :]
