"""Value checks of a structural schema, compiled: JSON schema in, one callable for each place out.

Words and field errors are those of apiextensions. A `Check` appends to a list of errors; `old` is the value that was
stored at the same place, and an unchanged value is not checked again (Kubernetes calls it ratcheting), so that a
stricter schema does not lock up objects that were valid before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from danlu.meta import fields
from danlu.meta.fields import FieldError
from danlu.meta.goregex import PatternError, compile_go
from danlu.meta.schema import formats

MOST_ERRORS = 1000  # of one object; nobody reads more, and each item of a list may have some

Errors = list[FieldError]
Step = Callable[[Any, Any, str, Errors], None]
MISSING = object()

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
_NUMBER_FORMATS = {int: "int64", float: "float64"}
NOWHERE = "<nil>"  # the path of errors that apiextensions does not place


def number(value: float) -> str:
    """As Go's %v prints a number."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return str(value)


class Check:
    __slots__ = ("expected", "form", "nullable", "steps", "types")

    def __init__(self, schema: Mapping[str, Any]) -> None:
        kind = schema.get("type", "")
        self.types: tuple[str, ...] = ("integer", "string") if schema.get("x-kubernetes-int-or-string") else ()
        if kind and not self.types:
            self.types = (kind,)
        self.expected = ",".join(self.types)
        self.nullable = bool(schema.get("nullable"))
        self.form = _known_format(schema.get("format", ""), self.types)
        self.steps: tuple[Step, ...] = tuple(_steps(schema, self.form, self.types))

    def __call__(self, value: Any, old: Any, path: str, errors: Errors) -> None:
        if value is None:
            if self.types and not self.nullable:
                errors.append(_wrong_type(path, self.expected, "null"))
            return
        if old is not MISSING and value == old and value.__class__ is old.__class__:
            return
        if self.types and not self._fits(value, path, errors):
            return
        for step in self.steps:
            step(value, old, path, errors)

    def _fits(self, value: Any, path: str, errors: Errors) -> bool:
        actual = _NAMES[value.__class__]
        if actual in self.types:
            return True
        if actual == "integer" and "number" in self.types:
            return True
        if actual == "number" and "integer" in self.types and value.is_integer():
            return True
        if self.form and value.__class__ not in (str, list):
            errors.append(_wrong_type(path, self.form, _NUMBER_FORMATS.get(value.__class__, "")))
        else:
            errors.append(_wrong_type(path, self.expected, actual))
        return False


def _wrong_type(path: str, expected: str, actual: str) -> FieldError:
    shown = f"{_body(path)} must be of type {expected}: {fields.quoted(actual)}"
    return fields.type_invalid(_field(path), actual, shown)


def _body(path: str) -> str:
    return f"{path} in body"


def _field(path: str) -> str:
    return path.removeprefix(".") or NOWHERE


def _known_format(name: str, types: tuple[str, ...]) -> str:
    if not name or len(types) > 1:
        return ""
    kind = types[0] if types else ""
    if kind in ("", "string"):
        return name if formats.checker(name) else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}.get(kind, ())
    return name if name in allowed else ""


def _steps(schema: Mapping[str, Any], form: str, types: tuple[str, ...]) -> list[Step]:
    steps: list[Step] = []
    for build in (_junctors, _strings, _numbers, _lists, _enum, _objects):
        step = build(schema, form, types)
        if step is not None:
            steps.append(step)
    return steps


def _strings(schema: Mapping[str, Any], form: str, _types: tuple[str, ...]) -> Step | None:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    accepts = formats.checker(form) if form else None
    if longest is None and shortest is None and not pattern and accepts is None:
        return None

    def check(value: Any, _old: Any, path: str, errors: Errors) -> None:
        if value.__class__ is not str:
            return
        if longest is not None and len(value) > longest:
            errors.append(fields.too_long(_field(path), "", longest))
        elif shortest is not None and len(value) < shortest:
            errors.append(
                fields.invalid(_field(path), value, f"{_body(path)} should be at least {shortest} chars long")
            )
        elif pattern:
            try:
                if not compile_go(pattern).search(value):
                    errors.append(fields.invalid(_field(path), value, f"{_body(path)} should match '{pattern}'"))
            except PatternError as reason:
                detail = f"{_body(path)} should match '{pattern}, but pattern is invalid: {reason}'"
                errors.append(fields.invalid(_field(path), value, detail))
        if accepts is not None and not accepts(value):
            detail = f"{_body(path)} must be of type {form}: {fields.quoted(value)}"
            errors.append(fields.type_invalid(_field(path), value, detail))

    return check


_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
_FLOAT_MAX = 3.4028235677973366e38


def _numbers(schema: Mapping[str, Any], form: str, types: tuple[str, ...]) -> Step | None:
    low, high, factor = schema.get("minimum"), schema.get("maximum"), schema.get("multipleOf")
    above, below = bool(schema.get("exclusiveMinimum")), bool(schema.get("exclusiveMaximum"))
    kind = types[0] if len(types) == 1 else ""
    if kind == "integer" and not form:
        bounds: tuple[float, float] | None = _RANGES["int64"]
    else:
        bounds = (-_FLOAT_MAX, _FLOAT_MAX) if form == "float" else _RANGES.get(form)
    if low is None and high is None and factor is None and bounds is None:
        return None
    shown_form = f"with format {form}" if form else "(default format)"

    def check(value: Any, _old: Any, path: str, errors: Errors) -> None:
        if value.__class__ is not int and value.__class__ is not float:
            return
        if bounds is not None and not bounds[0] <= value <= bounds[1]:
            detail = f"Checked value must be of type {kind} {shown_form} in {path}"
            errors.append(fields.invalid(NOWHERE, "", detail))
        if factor is not None and not _is_multiple(value, factor):
            detail = f"{_body(path)} should be a multiple of {number(factor)}"
            errors.append(fields.invalid(_field(path), value, detail))
        if low is not None and (value < low or (above and value == low)):
            word = "greater than" if above else "greater than or equal to"
            errors.append(fields.invalid(_field(path), value, f"{_body(path)} should be {word} {number(low)}"))
        if high is not None and (value > high or (below and value == high)):
            word = "less than" if below else "less than or equal to"
            errors.append(fields.invalid(_field(path), value, f"{_body(path)} should be {word} {number(high)}"))

    return check


def _is_multiple(value: float, factor: float) -> bool:
    if isinstance(value, int) and float(factor).is_integer():
        return factor > 0 and value % int(factor) == 0
    quotient = value / factor if factor > 0 else 0.5
    return abs(quotient - round(quotient)) < 1e-9


def _lists(schema: Mapping[str, Any], _form: str, _types: tuple[str, ...]) -> Step | None:
    items = schema.get("items")
    least, most, unique = schema.get("minItems"), schema.get("maxItems"), schema.get("uniqueItems")
    each = Check(items) if isinstance(items, dict) else None
    if each is None and least is None and most is None and not unique:
        return None
    keys = schema.get("x-kubernetes-list-map-keys") if schema.get("x-kubernetes-list-type") == "map" else None

    def check(value: Any, old: Any, path: str, errors: Errors) -> None:
        if value.__class__ is not list:
            return
        if each is not None:
            before = _by_key(old, keys) if keys and old.__class__ is list else {}
            for index, item in enumerate(value):
                old_item = before.get(_key_of(item, keys), MISSING) if before and keys else MISSING
                each(item, old_item, f"{path}[{index}]", errors)
                if len(errors) >= MOST_ERRORS:
                    return
        if least is not None and len(value) < least:
            detail = f"{_body(path)} should have at least {least} items"
            errors.append(fields.invalid(_field(path), len(value), detail))
        if most is not None and len(value) > most:
            errors.append(fields.too_many(_field(path), len(value), most))
        if unique and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
            errors.append(fields.invalid(_field(path), "", f"{_body(path)} shouldn't contain duplicates"))

    return check


def _key_of(item: Any, keys: list[str]) -> str:
    return json.dumps([item.get(key) for key in keys]) if isinstance(item, dict) else ""


def _by_key(items: list[Any], keys: list[str]) -> dict[str, Any]:
    return {_key_of(item, keys): item for item in items if isinstance(item, dict)}


def _enum(schema: Mapping[str, Any], _form: str, _types: tuple[str, ...]) -> Step | None:
    allowed = schema.get("enum")
    if not allowed:
        return None
    shown = [one if isinstance(one, str) else json.dumps(one, separators=(",", ":")) for one in allowed]

    texts = frozenset(one for one in allowed if isinstance(one, str))
    refusal = fields.not_supported("", "", shown)  # its text once: it lists all that is allowed

    def check(value: Any, _old: Any, path: str, errors: Errors) -> None:
        if value.__class__ is str:
            if value not in texts:
                errors.append(replace(refusal, field=_field(path), value=value))
        elif not any(value == one and isinstance(value, bool) is isinstance(one, bool) for one in allowed):
            errors.append(replace(refusal, field=_field(path), value=value))

    return check


def _objects(schema: Mapping[str, Any], _form: str, _types: tuple[str, ...]) -> Step | None:
    properties = {name: Check(child) for name, child in schema.get("properties", {}).items()}
    additional, required = schema.get("additionalProperties"), schema.get("required", ())
    least, most = schema.get("minProperties"), schema.get("maxProperties")
    values = Check(additional) if isinstance(additional, dict) else None
    if not (properties or values or required) and least is None and most is None and additional is not False:
        return None

    def check(value: Any, old: Any, path: str, errors: Errors) -> None:
        if value.__class__ is not dict:
            return
        if least is not None and len(value) < least:
            detail = f"{_body(path)} should have at least {least} properties"
            errors.append(fields.invalid(_field(path), len(value), detail))
        if most is not None and len(value) > most:
            errors.append(fields.too_many(_field(path), len(value), most))
        before = old if old.__class__ is dict else {}
        for key, item in value.items():
            known = properties.get(key)
            if known is not None:
                known(item, before.get(key, MISSING), f"{path}.{key}" if path else key, errors)
            elif values is not None:
                values(item, before.get(key, MISSING), f"{path}.{fields.key_in_path(key)}", errors)
                if len(errors) >= MOST_ERRORS:
                    return
            elif additional is False:
                errors.append(fields.invalid(_field(path), key, f"{path}.{key} in body is a forbidden property"))
        for key in required:
            if key not in value:
                errors.append(fields.required(_field(f"{path}.{key}")))

    return check


def _junctors(schema: Mapping[str, Any], _form: str, _types: tuple[str, ...]) -> Step | None:
    any_of = [Check(one) for one in schema.get("anyOf") or ()]
    one_of = [Check(one) for one in schema.get("oneOf") or ()]
    all_of = [Check(one) for one in schema.get("allOf") or ()]
    negated = Check(schema["not"]) if isinstance(schema.get("not"), dict) else None
    if not (any_of or one_of or all_of or negated):
        return None

    def check(value: Any, _old: Any, path: str, errors: Errors) -> None:
        quoted = fields.quoted(path)
        if any_of:
            failures = _tried(any_of, value, path)
            if all(failures):
                _nowhere(errors, f"{quoted} must validate at least one schema (anyOf)")
                errors.extend(_fewest(failures))
        if one_of:
            failures = _tried(one_of, value, path)
            valid = sum(not failure for failure in failures)
            if valid != 1:
                found = f"Found {valid} valid alternatives" if valid else "Found none valid"
                _nowhere(errors, f"{quoted} must validate one and only one schema (oneOf). {found}")
                if not valid:
                    errors.extend(_fewest(failures))
        if all_of:
            failures = _tried(all_of, value, path)
            if any(failures):
                for failure in failures:
                    errors.extend(failure)
                none = ". None validated" if all(failures) else ""
                _nowhere(errors, f"{quoted} must validate all the schemas (allOf){none}")
        if negated is not None and not _tried([negated], value, path)[0]:
            _nowhere(errors, f"{quoted} must not validate the schema (not)")

    return check


def _tried(checks: list[Check], value: Any, path: str) -> list[Errors]:
    results: list[Errors] = []
    for check in checks:
        found: Errors = []
        check(value, MISSING, path, found)
        results.append(found)
    return results


def _fewest(failures: list[Errors]) -> Errors:
    return sorted(failures, key=len)[0]


def _nowhere(errors: Errors, detail: str) -> None:
    errors.append(fields.invalid(NOWHERE, "", detail))
