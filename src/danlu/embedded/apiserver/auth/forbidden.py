"""The one wording of "403 Forbidden": what kubectl prints and scripts match on."""

from __future__ import annotations

from typing import NamedTuple

from danlu.errors import Forbidden

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})  # the real server never echoes what could be HTML


def resource_forbidden(plural: str, group: str, name: str, text: str) -> Forbidden:
    """`pods "x" is forbidden: <text>`, with the details kubectl reads."""
    if not plural:
        return Forbidden(f"forbidden: {text}", {})
    details = {"name": name} if name else {}
    if group:
        details["group"] = group
    details["kind"] = plural
    shown = f"{plural}.{group}" if group else plural
    subject = f'{shown} "{name}"' if name else shown
    return Forbidden(f"{subject} is forbidden: {text}", details)


class AccessAttributes(NamedTuple):
    """What somebody wanted to do, as the authorizer was asked; `path` is set where it is not about a resource."""

    verb: str
    group: str
    plural: str
    subresource: str
    namespace: str
    name: str
    path: str | None = None


def access_forbidden(user: str, wanted: AccessAttributes, reason: str = "") -> Forbidden:
    """The refusal of the authorizer."""
    plural, group, name = wanted.plural, wanted.group, wanted.name
    if wanted.path is not None:
        text = f'User "{user}" cannot {wanted.verb} path "{wanted.path}"'
        plural = group = name = ""
    else:
        resource = f"{plural}/{wanted.subresource}" if wanted.subresource else plural
        scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
        text = f'User "{user}" cannot {wanted.verb} resource "{resource}" in API group "{group}" {scope}'
    text = text.translate(_HTML)
    return resource_forbidden(plural, group, name, f"{text}: {reason}" if reason else text)
