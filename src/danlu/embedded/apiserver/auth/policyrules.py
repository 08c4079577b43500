"""RBAC policy rules as facts: what one rule allows, what it covers, and how missing rights are worded.

Pure functions on rules as they stand in Roles and ClusterRoles.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from danlu.meta.fields import quoted
from danlu.meta.kind import Object

Rule = Object
FULL_AUTHORITY: tuple[Rule, ...] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)


class CompiledRule:
    """A rule with its lists as sets, because every request asks it."""

    __slots__ = ("groups", "names", "resources", "rule", "urls", "verbs")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.verbs = frozenset(rule.get("verbs") or ())
        self.groups = frozenset(rule.get("apiGroups") or ())
        self.resources = frozenset(rule.get("resources") or ())
        self.names = frozenset(rule.get("resourceNames") or ())
        self.urls = tuple(rule.get("nonResourceURLs") or ())

    def allows(self, verb: str, group: str, resource: str, subresource: str, name: str) -> bool:
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        if group not in self.groups and "*" not in self.groups:
            return False
        if self.names and name not in self.names:
            return False
        if "*" in self.resources:
            return True
        if not subresource:
            return resource in self.resources
        return f"{resource}/{subresource}" in self.resources or f"*/{subresource}" in self.resources

    def allows_path(self, verb: str, path: str) -> bool:
        if verb not in self.verbs and "*" not in self.verbs:
            return False
        return any(_path_covers(url, path) for url in self.urls)

    def covers(self, part: CompiledRule) -> bool:
        """`part` has one verb, one group, one resource and at most one name, or one verb and one URL."""
        return (
            ("*" in self.verbs or part.verbs <= self.verbs)
            and ("*" in self.groups or part.groups <= self.groups)
            and ("*" in self.resources or all(self._has_resource(resource) for resource in part.resources))
            and all(any(_path_covers(own, url) for own in self.urls) for url in part.urls)
            and (not self.names or (bool(part.names) and part.names <= self.names))
        )

    def _has_resource(self, resource: str) -> bool:
        if resource in self.resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources


def _path_covers(owned: str, path: str) -> bool:
    return owned == path or (owned.endswith("*") and path.startswith(owned.rstrip("*")))


def missing(held: Sequence[CompiledRule], wanted: Iterable[Rule]) -> list[Rule]:
    """The smallest parts of `wanted` that no rule held covers."""
    parts = (part for rule in wanted for part in _parts(rule))
    return [part for part in parts if not any(own.covers(CompiledRule(part)) for own in held)]


def _parts(rule: Rule) -> Iterable[Rule]:
    verbs = rule.get("verbs") or ()
    for group, resource, verb in product(rule.get("apiGroups") or (), rule.get("resources") or (), verbs):
        part: Rule = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        names = rule.get("resourceNames")
        if names:
            yield from ({**part, "resourceNames": [name]} for name in names)
        else:
            yield part
    for url, verb in product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [url], "verbs": [verb]}


def describe(parts: Iterable[Rule]) -> str:
    """One line for each group, resource and name, with its verbs together; sorted."""
    lines: list[Rule] = []
    together: dict[tuple[str, ...], Rule] = {}
    for part in parts:
        if part.get("nonResourceURLs"):
            lines.append(part)
            continue
        key = (part["apiGroups"][0], part["resources"][0], *part.get("resourceNames", ()))
        if key in together:
            together[key]["verbs"].extend(part["verbs"])
        else:
            together[key] = {**part, "verbs": list(part["verbs"])}
            lines.append(together[key])
    return "\n".join(sorted({_line(line) for line in lines}))


_SHOWN = (
    ("APIGroups", "apiGroups"),
    ("Resources", "resources"),
    ("NonResourceURLs", "nonResourceURLs"),
    ("ResourceNames", "resourceNames"),
    ("Verbs", "verbs"),
)


def _line(rule: Rule) -> str:
    return "{" + ", ".join(f"{title}:{go_list(rule[key])}" for title, key in _SHOWN if rule.get(key)) + "}"


def go_list(texts: Iterable[str]) -> str:
    """A list of strings as Go's %q prints it."""
    return "[" + " ".join(quoted(text) for text in texts) + "]"
