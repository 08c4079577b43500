"""`Cause`: a code, its parameters and what it is about. `render` says it in a language; `say` makes a message of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from danlu.diagnose import tables
from danlu.diagnose.contract import FOREIGN, NESTED_CAUSES
from danlu.diagnose.phrases import UNKNOWN, Hole, Phrase
from danlu.diagnose.reading import in_chinese
from danlu.diagnose.tables import MORE
from danlu.meta.kind import Object
from danlu.meta.said import ANNOTATION, CAUSES, Said, carried, tail_of

Params = Mapping[str, Any]
ORDER = ("error", "waiting", "warning", "info")
KEEPS = ORDER[:2]


@dataclass(frozen=True, slots=True)
class Cause:
    code: str
    params: Params = field(default_factory=dict)
    about: str = ""  # Kind/name of the object that it is about
    reason: str = field(default="", compare=False)  # the word that Kubernetes has for it, for conditions and events

    @property
    def severity(self) -> str:
        return tables.templates()[self.code].severity

    @property
    def keeps(self) -> bool:
        """Whether it keeps what it is about from running; else it is worth knowing."""
        return self.severity in KEEPS

    def sentence(self, language: str = "en", inner: int = NESTED_CAUSES) -> str:
        """`inner`: so many causes within the cause are said."""
        text = self._said(tables.templates()[self.code].sentence[language], language, inner)
        if self.params.get(MORE):
            text += self._said(tables.more()[language], language, inner)
        return text

    def remedy(self, language: str = "en", inner: int = NESTED_CAUSES) -> str:
        found = tables.templates()[self.code].remedy.get(language)
        return self._said(found, language, inner) if found else ""

    def _said(self, phrase: Phrase, language: str, inner: int) -> str:
        return phrase.filled(self.params, lambda hole: _value(self.params.get(hole.name), hole, language, inner))

    def text(self, language: str = "en") -> str:
        """The sentence and what mends it."""
        remedy = self.remedy(language)
        joint = "；" if language == "zh" else "; "
        return f"{self.sentence(language).rstrip('. ')}{joint}{remedy}" if remedy else self.sentence(language)

    def carried(self) -> dict[str, Any]:
        """For a condition or an event: only what the sentences say, for each byte is written with every status."""
        wanted = tables.templates()[self.code].names
        kept = {name: value for name, value in self.params.items() if name in wanted and value not in UNKNOWN}
        return {"code": self.code, "params": kept} if kept else {"code": self.code}

    def as_json(self) -> dict[str, Any]:
        return {"params": {}, **self.carried(), "about": self.about, "severity": self.severity}


def say(code: str, **params: Any) -> Said:
    """A message of ours: its English text, carrying code and parameters. A parameter may be such a message itself."""
    return said([_of(code, params)])


def stated(code: str, **params: Any) -> Said:
    """As `say`, without the remedy: for places whose words others know, such as a scheduler's."""
    cause = _of(code, params)
    return Said(cause.sentence(), [cause.carried()])


def _of(code: str, params: Params) -> Cause:
    return Cause(code, {name: _plain(value) for name, value in params.items() if value not in UNKNOWN})


def said(causes: Sequence[Cause], *, log: str = "") -> Said:
    """Several causes as one message. `log`: a program's last lines, which are shown after it as they are."""
    text = ". ".join(cause.text().rstrip(". ") if len(causes) > 1 else cause.text() for cause in causes)
    return Said("\n".join(filter(None, (text, log))), entries(causes, log))


def entries(causes: Iterable[Cause], log: str = "") -> list[dict[str, Any]]:
    """What a message of these causes carries, after which come the lines of `log`."""
    found = [cause.carried() for cause in causes]
    if log and found:
        found[-1]["lines"] = log.count("\n") + 1
    return found


def worst_first(causes: Iterable[Cause]) -> list[Cause]:
    return sorted(causes, key=lambda cause: ORDER.index(cause.severity))


def render(causes: Iterable[Mapping[str, Any]], message: str, language: str) -> str:
    """A stored message with what it carries, in this language; a code that this version does not know: as stored."""
    stored = [*causes]
    known = tables.templates()
    if not stored or any(entry.get("code") not in known for entry in stored):
        return _translated(message) if language == "zh" else message
    if language == "en":
        return message
    texts = [Cause(str(entry["code"]), _params(entry)).text(language) for entry in stored]
    lines = int(stored[-1].get("lines") or 0)
    return "\n".join(["。".join(text.rstrip("。") for text in texts), *(message.split("\n")[-lines:] if lines else ())])


def causes_in(stored: Object, about: str = "") -> list[Cause]:
    """What a condition, an event or a pod carries; nothing where that is not ours or of a later version."""
    held: Any = stored.get(CAUSES)
    if held is None:
        text = ((stored.get("metadata") or {}).get("annotations") or {}).get(ANNOTATION)
        try:
            held = orjson.loads(text) if text else []
        except ValueError:
            held = []
    if not isinstance(held, list):
        return []
    known = tables.templates()
    reason = str(stored.get("reason") or "")
    return [
        Cause(entry["code"], _params(entry), about, reason)
        for entry in held
        if isinstance(entry, dict) and isinstance(entry.get("code"), str) and entry["code"] in known
    ]


def _translated(message: str) -> str:
    """What another component said, in Chinese as far as it is known; what an API server said for us by its code."""
    tail = tail_of(message)
    if tail is not None and tail[0] in tables.templates():
        return Cause(*tail).sentence("zh")
    return in_chinese(message) or message


def _plain(value: Any) -> Any:
    """Of a message that carries one cause, that; else the value itself."""
    held = carried(value) if isinstance(value, str) else []
    if len(held) == 1:
        return held[0]
    return str(value) if isinstance(value, str) else value


def _params(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Anybody may write an annotation: what is no parameter is none."""
    found = entry.get("params")
    return {str(name): value for name, value in found.items()} if isinstance(found, Mapping) else {}


def _value(given: Any, hole: Hole, language: str, inner: int) -> str:
    if isinstance(given, str) and language == "en":
        return given
    if isinstance(given, Mapping):
        why = Cause(str(given.get("code")), _params(given))
        if why.code not in tables.templates() or not inner:
            return ""
        return why.remedy(language, inner - 1) if hole.is_remedy else why.sentence(language, inner - 1)
    text = "" if given is None else str(given)
    return _translated(text) if language == "zh" and hole.name in FOREIGN else text
