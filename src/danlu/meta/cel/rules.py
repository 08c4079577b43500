"""x-kubernetes-validations: the rules of a structural schema, compiled once, run on every write.

A rule sees `self`, the value it stands at, and `oldSelf`, the value stored at the same place; a rule that names
`oldSelf` runs only where there is an old value (or with optionalOldSelf always). A rule that does not name it is not
held against a value that did not change.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from danlu.meta import fields
from danlu.meta.cel.checker import DYN, CheckProblem, Type, check, type_of
from danlu.meta.cel.costs import Budget, CostExceeded
from danlu.meta.cel.evaluator import BUDGET, Closure, compile_tree
from danlu.meta.cel.parser import identifiers
from danlu.meta.cel.values import (
    NONE,
    CelError,
    MapList,
    NoSuchOverload,
    Optional,
    SetList,
    parse_duration,
    parse_timestamp,
)
from danlu.meta.fields import FieldError
from danlu.meta.schema.schemanode import Node

MISSING = object()
_NOWHERE = "<nil>"
_LONGEST_MESSAGE = 5 * 1024
_TIMES = ("date", "date-time", "datetime")


@dataclass(slots=True)
class CelRule:
    given: Mapping[str, Any]
    program: Closure
    message: Closure | None
    uses_old: bool

    @property
    def shown(self) -> str:
        return str(self.given.get("message") or self.given["rule"]).strip()

    @property
    def text(self) -> str:
        message = self.given.get("message")
        return message.strip() if message else f"failed rule: {self.given['rule'].strip()}"


def compile_rule(given: Mapping[str, Any], self_type: Type) -> CelRule:
    """Raises Problem."""
    old = DYN if given.get("optionalOldSelf") else self_type
    variables = {"self": self_type, "oldSelf": old}
    tree, result = check(given["rule"], variables)
    if result.kind not in ("bool", "dyn"):
        raise CheckProblem("cel expression must evaluate to a bool")
    message: Closure | None = None
    if given.get("messageExpression"):
        message_tree, result = check(given["messageExpression"], variables)
        if result.kind not in ("string", "dyn"):
            raise CheckProblem("messageExpression must evaluate to a string")
        message = compile_tree(message_tree)
    try:
        return CelRule(given, compile_tree(tree), message, "oldSelf" in identifiers(tree))
    except CelError as error:
        raise CheckProblem(str(error)) from None


def compile_errors(
    schema: Mapping[str, Any], path: str, uncorrelated: str = "", *, root: bool = True
) -> list[FieldError]:
    """What is wrong with the rules at and below `path`; `uncorrelated` is where old values stop being findable."""
    errors: list[FieldError] = []
    self_type = type_of(schema, resource=root) if schema.get("x-kubernetes-validations") else DYN
    for index, given in enumerate(schema.get("x-kubernetes-validations") or ()):
        place = f"{path}.x-kubernetes-validations[{index}]"
        try:
            rule = compile_rule({**given, "messageExpression": ""}, self_type)
        except CheckProblem as problem:
            errors.append(fields.invalid(f"{place}.rule", _as_go(given), _worded(problem)))
            continue
        if given.get("messageExpression"):
            try:
                compile_rule(given, self_type)
            except CheckProblem as problem:
                detail = _worded(problem).replace("compilation failed", "messageExpression compilation failed", 1)
                errors.append(fields.invalid(f"{place}.messageExpression", _as_go(given), detail))
        if rule.uses_old and uncorrelated:
            detail = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            errors.append(fields.invalid(f"{place}.rule", given["rule"], detail))
        elif not rule.uses_old and given.get("optionalOldSelf") is not None:
            detail = "may not be set if oldSelf is not used in rule"
            errors.append(fields.invalid(f"{place}.optionalOldSelf", given["optionalOldSelf"], detail))
    below = uncorrelated or (path if schema.get("x-kubernetes-map-type") == "atomic" else "")
    for name, child in (schema.get("properties") or {}).items():
        errors += compile_errors(child, f"{path}.properties[{name}]", below, root=False)
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        errors += compile_errors(values, f"{path}.additionalProperties", uncorrelated, root=False)
    if isinstance(schema.get("items"), dict):
        lost = uncorrelated or ("" if schema.get("x-kubernetes-list-type") == "map" else path)
        errors += compile_errors(schema["items"], f"{path}.items", lost, root=False)
    return errors


def _worded(problem: CheckProblem) -> str:
    return f"compilation failed: {problem.text}" if problem.text.startswith("ERROR") else problem.text


def _as_go(given: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("rule", "message", "messageExpression", "reason", "fieldPath", "optionalOldSelf")
    empty = {"reason": None, "optionalOldSelf": None}
    return {key[0].upper() + key[1:]: given.get(key, empty.get(key, "")) for key in keys}


class _Place:
    """One place in the schema that has rules at it or below it."""

    __slots__ = ("converts", "due", "fields", "items", "keys", "node", "root", "rules", "values")

    def __init__(self, node: Node, *, root: bool = False) -> None:
        self.node, self.root = node, root
        schema = node.schema
        self_type = type_of(schema, resource=root) if schema.get("x-kubernetes-validations") else DYN
        self.rules: list[CelRule | str] = []
        for given in schema.get("x-kubernetes-validations") or ():
            try:
                self.rules.append(compile_rule(given, self_type))
            except CheckProblem as problem:
                self.rules.append(_worded(problem))
        self.converts = bool(self.rules) and _needs_conversion(schema)
        self.fields = {name: place for name, child in node.fields.items() if (place := _place(child)) is not None}
        self.items = _place(node.items) if node.items is not None else None
        self.values = _place(node.values) if node.values is not None else None
        self.keys = node.map_keys if node.list_type == "map" else ()
        below = [*self.fields.values(), *(place for place in (self.items, self.values) if place is not None)]
        # Whether there is a rule that has its say also about what did not change.
        self.due: bool = any(isinstance(r, str) or r.uses_old for r in self.rules) or any(place.due for place in below)

    @property
    def empty(self) -> bool:
        return not (self.rules or self.fields or self.items or self.values)


def _place(node: Node) -> _Place | None:
    if not node.schema:
        return None
    place = _Place(node)
    return None if place.empty else place


class Rules:
    """All rules of one schema."""

    def __init__(self, root: Node) -> None:
        self._root = _Place(root, root=True)

    def validate(self, obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[FieldError]:
        errors: list[FieldError] = []
        variables: dict[str, Any] = {BUDGET: Budget()}
        with suppress(CostExceeded):  # told with the rule that it was exceeded in; no rule runs after it
            _validate(self._root, obj, MISSING if old is None else old, "", errors, variables)
        return errors


def _validate(place: _Place, value: Any, old: Any, path: str, errors: list[FieldError], env: dict[str, Any]) -> None:
    if value is None or (not place.due and old is not MISSING and value == old):
        return
    if place.rules:
        _run(place, value, old, path, errors, env)
    if value.__class__ is dict:
        before = old if old.__class__ is dict else {}
        for name, child in place.fields.items():
            if name in value:
                below = f"{path}.{name}" if path else name
                _validate(child, value[name], before.get(name, MISSING), below, errors, env)
        if place.values is not None:
            for name, item in value.items():
                if name not in place.node.fields:
                    _validate(
                        place.values,
                        item,
                        before.get(name, MISSING),
                        f"{path}[{fields.key_in_path(name)}]",
                        errors,
                        env,
                    )
    elif value.__class__ is list and place.items is not None:
        known = {_key(item, place.keys): item for item in old} if place.keys and old.__class__ is list else {}
        for index, item in enumerate(value):
            old_item = known.get(_key(item, place.keys), MISSING) if known else MISSING
            _validate(place.items, item, old_item, f"{path}[{index}]", errors, env)


def _key(item: Any, keys: tuple[str, ...]) -> str:
    return json.dumps([item.get(key) for key in keys]) if isinstance(item, dict) else ""


def _run(place: _Place, value: Any, old: Any, path: str, errors: list[FieldError], env: dict[str, Any]) -> None:
    where = path or _NOWHERE
    kind = place.node.schema.get("type", "")
    had = old is not MISSING and old is not None
    seen = _as_self(place, value)
    seen_old = _as_self(place, old) if had else None
    for rule in place.rules:
        if isinstance(rule, str):
            errors.append(fields.invalid(where, kind, f"rule compile error: {rule}"))
            continue
        optional = bool(rule.given.get("optionalOldSelf"))
        if rule.uses_old and not had and not optional:
            continue
        env["self"] = seen
        env["oldSelf"] = (Optional(True, seen_old) if had else NONE) if optional else seen_old
        try:
            if rule.program(env) is True:
                continue
        except NoSuchOverload:
            text = "call arguments did not match a supported operator, function or macro signature for rule"
            errors.append(fields.invalid(where, kind, f"'no such overload': {text}: {rule.shown}"))
            continue
        except CostExceeded as error:
            text = "no further validation rules will be run due to call cost exceeds limit for rule"
            errors.append(fields.invalid(where, kind, f"'{error}': {text}: {rule.shown}"))
            raise
        except CelError as error:
            errors.append(fields.invalid(where, kind, f"{error} evaluating rule: {rule.shown}"))
            continue
        if not rule.uses_old and had and value == old:
            continue
        errors.append(_failure(rule, place, value, path, env))


def _failure(rule: CelRule, place: _Place, value: Any, path: str, env: dict[str, Any]) -> FieldError:
    detail = rule.text
    if rule.message is not None:
        try:
            said = rule.message(env)
            if isinstance(said, str) and said.strip() and len(said) <= _LONGEST_MESSAGE and "\n" not in said.strip():
                detail = said.strip()
        except (CelError, CostExceeded):
            pass  # the plain message stands in for one that cannot be made
    where = path
    field_path = _plain_path(rule.given.get("fieldPath") or "")
    if field_path:
        where = f"{path}{field_path}" if field_path.startswith("[") else f"{path}.{field_path}" if path else field_path
    compound = place.node.schema.get("type") in ("object", "array")
    shown = fields.OMITTED if compound else value
    reason = rule.given.get("reason") or "FieldValueInvalid"
    if reason == "FieldValueForbidden":
        return fields.forbidden(where or _NOWHERE, detail)
    if reason == "FieldValueRequired":
        return fields.required(where or _NOWHERE, detail)
    if reason == "FieldValueDuplicate":
        return fields.duplicate(where or _NOWHERE, shown)
    return fields.invalid(where or _NOWHERE, shown, detail)


def _plain_path(text: str) -> str:
    """`.a['b']` as field errors write it: a[b]."""
    return text.strip().removeprefix(".").replace("['", "[").replace("']", "]")


# -- JSON to CEL


def _as_self(place: _Place, value: Any) -> Any:
    if place.root and isinstance(value, dict):
        metadata = value.get("metadata") or {}
        named = {key: metadata[key] for key in ("name", "generateName") if key in metadata}
        value = {**value, "metadata": named}
    return _converted(value, place.node.schema) if place.converts else value


def _needs_conversion(schema: Mapping[str, Any]) -> bool:
    """Whether some value below is not its own CEL value."""
    if schema.get("format") in ("byte", "duration", *_TIMES) and schema.get("type") == "string":
        return True
    if schema.get("type") == "number" or schema.get("x-kubernetes-list-type") in ("set", "map"):
        return True
    below = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(_needs_conversion(child) for child in below if isinstance(child, dict))


def _converted(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        properties, values = schema.get("properties") or {}, schema.get("additionalProperties")
        rest = values if isinstance(values, dict) else {}
        return {key: _converted(item, properties.get(key, rest)) for key, item in value.items()}
    if isinstance(value, list):
        items = schema.get("items") or {}
        made = [_converted(item, items) for item in value]
        if schema.get("x-kubernetes-list-type") == "set":
            return SetList(made)
        if schema.get("x-kubernetes-list-type") == "map":
            keyed = MapList(made)
            keyed.keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            return keyed
        return made
    if isinstance(value, int) and not isinstance(value, bool) and schema.get("type") == "number":
        return float(value)
    if isinstance(value, str) and schema.get("type") == "string":
        return _by_format(value, schema.get("format", ""))
    return value


def _by_format(value: str, form: str) -> Any:
    try:
        if form == "byte":
            return base64.b64decode(value)
        if form == "duration":
            return parse_duration(value)
        if form in _TIMES:
            return parse_timestamp(value)
    except (CelError, ValueError):
        return value
    return value
