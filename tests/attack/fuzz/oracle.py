"""Judges: whether an answer shows what the asker may not see, and whether anything changed that they may not change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.attack.fuzz.people import ADMIN, PEOPLE
from tests.attack.fuzz.steps import Step
from tests.attack.fuzz.wire import Answer
from tests.attack.fuzz.world import Place, World

# Objects without a namespace that are nobody's secret, or the asker's own.
OPEN_KINDS = frozenset((
    "Status", "SelfSubjectReview", "SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview",
    "LocalSubjectAccessReview", "TokenReview", "TokenRequest", "APIVersions", "APIGroup", "APIGroupList",
    "APIResourceList", "APIGroupDiscoveryList", "Table", "Eviction", "Binding", "DeleteOptions", "Scale", "",
))  # fmt: skip
WELL_MEANT_5XX = (503, 504)  # no such backend, no such revision yet: Kubernetes answers the same


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind`: leak, reveal, change, crash, memory, hang, dropped, error, restart."""

    kind: str
    text: str
    step: Step
    index: int = 0

    @property
    def signature(self) -> str:
        return f"{self.kind}: {self.step.shape}"


@dataclass(slots=True)
class Judge:
    world: World
    before: dict[Place, str] = field(default_factory=dict)  # the canaries
    frozen: dict[Place, str] = field(default_factory=dict)
    writers: set[str] = field(default_factory=set)  # people who have changed something in this episode
    given: set[str] = field(default_factory=set)  # namespaces whose owner may have handed rights on

    def begin(self) -> None:
        self.before, self.frozen = self.world.canaries(), self.world.frozen()
        self.writers, self.given = set(), set()

    def look_again(self) -> None:
        """After a restart, at which the server writes its own policies and definitions anew."""
        now = self.world.frozen()
        kept = {place: version for place, version in self.frozen.items() if place[0]}
        self.frozen = kept | {place: version for place, version in now.items() if not place[0]}

    # -- answers

    def answer(self, step: Step, answer: Answer) -> tuple[str, str] | None:
        """(kind, text) of what is wrong with it."""
        if step.person != ADMIN and (problem := self._shown(step, answer)):
            return problem
        if answer.problem.startswith("connection dropped"):
            return "dropped", f"{answer.problem}"
        if answer.status >= 500 and answer.status not in WELL_MEANT_5XX:
            return "error", f"{answer.status} {answer.body[:300].decode(errors='replace')}"
        if step.person != ADMIN and step.mutates and 200 <= answer.status < 300:
            self._note_rights(step)
        return None

    def _shown(self, step: Step, answer: Answer) -> tuple[str, str] | None:
        person = PEOPLE[step.person]
        for namespace, plural, name in sorted(self.world.leaked(answer.body)):
            if namespace in self.given or person.may_read(namespace, plural):
                continue
            return "leak", f"{step.person} was shown the canary of {plural} {name} in {namespace}"
        if not 200 <= answer.status < 300:
            return None
        for obj in (obj for document in answer.documents for obj in objects(document)):
            namespace, name, kind = _whose(obj)
            if namespace in self.given:
                continue
            if namespace and namespace != person.home:
                return "reveal", f"{step.person} was shown {kind} {name} of namespace {namespace}"
            if not namespace and kind not in OPEN_KINDS and not kind.endswith("List"):
                return "reveal", f"{step.person} was shown {kind} {name}, which belongs to no namespace"
        return None

    def _note_rights(self, step: Step) -> None:
        person = PEOPLE[step.person]
        self.writers.add(person.name)
        if person.may_grant:  # any write of theirs may be a binding; what they give away is theirs to give
            words = ("rolebindings", "roles", "token", "serviceaccounts", "namespaces", "projects")
            if any(word in step.path for word in words) or "%" in step.path:
                self.given.add(person.home)

    # -- changes

    def changes(self) -> str:
        """What has changed of the canaries and may not have; "" when nothing."""
        before, self.before = self.before, self.world.canaries()
        return self._told(before, self.before)

    def thaw(self) -> str:
        """The same for everything that must never change."""
        before, self.frozen = self.frozen, self.world.frozen()
        return self._told(before, self.frozen)

    def _told(self, before: dict[Place, str], now: dict[Place, str]) -> str:
        for place in sorted({**before, **now}):
            if before.get(place) == now.get(place) or any(PEOPLE[name].may_change(*place) for name in self.writers):
                continue
            namespace, plural, name = place
            how = "is new" if place not in before else "is gone" if place not in now else "was changed"
            where = f" in namespace {namespace}" if namespace else ""
            return f"{plural} {name}{where} {how}, and nobody who wrote anything may do that"
        return ""


def objects(document: Any) -> Iterator[dict[str, Any]]:
    """What an answer is about: an object, those of a list or table, or that of an event. Not what lies inside them."""
    if not isinstance(document, dict):
        return
    if document.get("type") == "BOOKMARK":
        return  # a revision in the shape of an object
    if isinstance(inner := document.get("object"), dict):
        document = inner  # an event of a watch
    rows = document.get("rows")
    if isinstance(rows, list):
        yield from (row["object"] for row in rows if isinstance(row, dict) and isinstance(row.get("object"), dict))
    elif isinstance(items := document.get("items"), list):
        kind = str(document.get("kind", "")).removesuffix("List")
        yield from ({"kind": kind, **item} for item in items if isinstance(item, dict))
    elif isinstance(document.get("metadata"), dict):
        yield document


def _whose(obj: dict[str, Any]) -> tuple[str, str, str]:
    meta = obj.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    kind, name = str(obj.get("kind", "")), str(meta.get("name", ""))
    namespace = str(meta.get("namespace") or (name if kind == "Namespace" else ""))
    return namespace, name, kind
