"""Does a rule fit its schema? Types are inferred where the schema knows them; what it does not know is `dyn`.

Finds what authors get wrong: misspelt fields, unknown names and functions, operators on types that do not go together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from danlu.meta.cel.evaluator import COMPREHENSIONS, FUNCTIONS, METHODS, NAMESPACES, TYPE_NAMES, unescaped
from danlu.meta.cel.parser import (
    CallExpr,
    Expr,
    Ident,
    Index,
    ListNode,
    Literal,
    MapNode,
    MessageNode,
    OptionalEntry,
    Select,
    SyntaxProblem,
    Uint,
    parse,
)


@dataclass(frozen=True, slots=True)
class Type:
    kind: str  # int, uint, double, bool, string, bytes, null_type, list, map, object, dyn …
    item: Type | None = None  # of lists and maps
    fields: Mapping[str, Type] = field(default_factory=dict, hash=False)  # of objects
    key: Type | None = None  # of maps; None: string, as in every schema

    def __str__(self) -> str:
        if self.kind == "list":
            return f"list({self.item or DYN})"
        if self.kind == "map":
            return f"map({self.key or STRING}, {self.item or DYN})"
        return self.kind


DYN, BOOL, INT, UINT, DOUBLE = Type("dyn"), Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null_type")
TIMESTAMP, DURATION = Type("google.protobuf.Timestamp"), Type("google.protobuf.Duration")
_SCALARS = {"string": STRING, "integer": INT, "number": DOUBLE, "boolean": BOOL}
_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP, "datetime": TIMESTAMP}
_META = Type("object", fields={"name": STRING, "generateName": STRING})
_NUMBERS = ("int", "uint", "double")
_ORDERED = (*_NUMBERS, "string", "bytes", "bool", TIMESTAMP.kind, DURATION.kind)
_RETURNED = {
    INT: (
        "size indexOf lastIndexOf int family prefixLength asInteger sign compareTo major minor patch getFullYear "
        "getMonth getDate getDayOfMonth getDayOfWeek getDayOfYear getHours getMinutes getSeconds getMilliseconds"
    ),
    BOOL: (
        "startsWith endsWith contains matches isSorted bool hasValue isURL isIP isCIDR isQuantity isSemver isInteger "
        "isLessThan isGreaterThan containsIP containsCIDR has isUnspecified isLoopback isLinkLocalMulticast "
        "isLinkLocalUnicast isGlobalUnicast"
    ),
    STRING: (
        "string join lowerAscii upperAscii replace substring trim charAt format find getScheme getHost getHostname "
        "getPort getEscapedPath"
    ),
    UINT: "uint",
    DOUBLE: "double asApproximateFloat",
    BYTES: "bytes",
    DURATION: "duration",
    TIMESTAMP: "timestamp",
    Type("list", STRING): "split findAll",
}
_RETURNS = {name: kind for kind, names in _RETURNED.items() for name in names.split()}
_STRING_METHODS = (
    "startsWith endsWith matches charAt lowerAscii upperAscii replace split substring trim format find findAll"
)
_ON_STRINGS = frozenset(_STRING_METHODS.split())


def type_of(schema: Mapping[str, Any], *, resource: bool = False) -> Type:
    """The CEL type of a structural schema; `resource`: with apiVersion, kind and metadata."""
    if schema.get("x-kubernetes-int-or-string"):
        return DYN
    kind = schema.get("type", "")
    if kind == "array":
        items = schema.get("items")
        return Type("list", type_of(items) if isinstance(items, dict) else DYN)
    if kind == "object":
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return Type("map", type_of(values))
        if values is True:
            return Type("map", DYN)
        fields = {name: type_of(child) for name, child in (schema.get("properties") or {}).items()}
        if resource or schema.get("x-kubernetes-embedded-resource"):
            fields |= {"apiVersion": STRING, "kind": STRING, "metadata": _META}
        elif not fields:
            return DYN
        return Type("object", fields=fields)
    if kind == "string":
        return _FORMATS.get(schema.get("format", ""), STRING)
    return _SCALARS.get(kind, DYN)


class CheckProblem(Exception):
    """A rule that does not compile; `text` as cel-go shows it."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


def check(source: str, variables: Mapping[str, Type], messages: Collection[str] = ()) -> tuple[Expr, Type]:
    """Parses and checks. Raises Problem. `messages`: types that may be made, by the first part of their name."""
    try:
        tree = parse(source)
    except SyntaxProblem as problem:
        raise CheckProblem(_shown(source, [(problem.position, problem.message)])) from None
    checker = _Checker(dict(variables), messages)
    result = checker.visit(tree)
    if checker.errors:
        raise CheckProblem(_shown(source, sorted(checker.errors)))
    return tree, result


def _shown(source: str, errors: list[tuple[int, str]]) -> str:
    shown = []
    for position, message in errors:
        start = source.rfind("\n", 0, position) + 1
        line = source.count("\n", 0, position) + 1
        text = source[start:].split("\n", 1)[0]
        column = position - start
        shown.append(f"ERROR: <input>:{line}:{column + 1}: {message}\n | {text}\n | {'.' * column}^")
    return "\n".join(shown)


class _Checker:
    def __init__(self, variables: dict[str, Type], messages: Collection[str]) -> None:
        self.variables = variables
        self.messages = messages
        self.errors: list[tuple[int, str]] = []

    def fail(self, node: Expr, message: str) -> Type:
        self.errors.append((node.position, message))
        return DYN

    def visit(self, node: Expr) -> Type:
        match node:
            case Literal():
                return _literal(node.value)
            case Ident():
                return self.ident(node)
            case Select():
                return self.select(node)
            case Index():
                return self.index(node)
            case OptionalEntry():
                inner = self.visit(node.value)
                if inner.kind not in ("optional", "dyn"):
                    return self.fail(node, f"expected type 'optional_type(dyn)' but found '{inner}'")
                return DYN
            case ListNode():
                return Type("list", _common([self.visit(item) for item in node.items]))
            case MapNode():
                entries = [(self.visit(key), self.visit(value)) for key, value in node.entries]
                key = _common([key for key, _ in entries])
                return Type("map", _common([value for _, value in entries]), key=None if key == STRING else key)
            case MessageNode():
                for _, _, value in node.entries:
                    self.visit(value)
                if node.name.partition(".")[0] not in self.messages:
                    return self.fail(node, f"undeclared reference to '{node.name}' (in container '')")
                return Type("message")
            case CallExpr():
                return self.call(node)
        return DYN

    def ident(self, node: Ident) -> Type:
        known = self.variables.get(node.name)
        if known is not None:
            return known
        if node.name in TYPE_NAMES:
            return Type("type")
        return self.fail(node, f"undeclared reference to '{node.name}' (in container '')")

    def select(self, node: Select) -> Type:
        target = self.visit(node.target)
        if target.kind == "object":
            found = target.fields.get(unescaped(node.field)) or target.fields.get(node.field)
            if found is None:
                return self.fail(node, f"undefined field '{node.field}'")
            return Type("optional") if node.optional else found
        if target.kind == "map":
            return Type("optional") if node.optional else target.item or DYN
        if target.kind in ("dyn", "optional"):
            return Type("optional") if node.optional or target.kind == "optional" else DYN
        return self.fail(node, f"type '{target}' does not support field selection")

    def index(self, node: Index) -> Type:
        target, key = self.visit(node.target), self.visit(node.key)
        if node.optional or target.kind == "optional":
            return Type("optional")
        if target.kind in ("list", "map"):
            if key.kind not in (_NUMBERS if target.kind == "list" else (_member(target).kind,)) and not (
                key.kind == "dyn" or (target.kind == "map" and _member(target) == DYN)
            ):
                return self.fail(node, f"found no matching overload for '_[_]' applied to '({target}, {key})'")
            return target.item or DYN
        if target.kind == "dyn":
            return DYN
        return self.fail(node, f"found no matching overload for '_[_]' applied to '({target}, {key})'")

    def call(self, node: CallExpr) -> Type:
        if node.name == "_?_:_":
            test, yes, no = (self.visit(arg) for arg in node.args)
            if test.kind not in ("bool", "dyn") or not _agree(yes, no):
                return self.no_overload(node, [test, yes, no])
            return yes if no.kind in (yes.kind, "null_type") else DYN
        if node.name.startswith("_") or node.name in ("!_", "-_", "@in"):
            return self.operator(node, [self.visit(arg) for arg in node.args])
        if node.target is None and node.name == "has":
            if len(node.args) != 1 or not isinstance(node.args[0], Select):
                return self.fail(node, "invalid argument to has() macro")
            self.visit(node.args[0])
            return BOOL
        if node.target is not None and node.name in (*COMPREHENSIONS, "optMap", "optFlatMap"):
            found = self.comprehension(node)
            if found is not None:
                return found
        return self.function(node)

    def no_overload(self, node: CallExpr, types: list[Type]) -> Type:
        shown = ", ".join(map(str, types))
        return self.fail(node, f"found no matching overload for '{node.name}' applied to '({shown})'")

    def operator(self, node: CallExpr, types: list[Type]) -> Type:
        name, kinds = node.name, [one.kind for one in types]
        if name in ("_&&_", "_||_", "!_"):
            return BOOL if all(kind in ("bool", "dyn") for kind in kinds) else self.no_overload(node, types)
        if name == "-_":
            fine = kinds[0] in ("int", "double", "dyn", DURATION.kind)
            return types[0] if fine else self.no_overload(node, types)
        if name in ("_==_", "_!=_"):
            return BOOL if _agree(*types) else self.no_overload(node, types)
        if name == "@in":
            if kinds[1] not in ("list", "map", "dyn") or (types[1].item and not _agree(types[0], _member(types[1]))):
                return self.no_overload(node, types)
            return BOOL
        if "dyn" in kinds:
            return BOOL if name in ("_<_", "_<=_", "_>_", "_>=_") else DYN
        if name in ("_<_", "_<=_", "_>_", "_>=_"):
            numbers = all(kind in _NUMBERS for kind in kinds)
            return BOOL if numbers or (kinds[0] == kinds[1] and kinds[0] in _ORDERED) else self.no_overload(node, types)
        return self.arithmetic(node, types, kinds)

    def arithmetic(self, node: CallExpr, types: list[Type], kinds: list[str]) -> Type:
        same = kinds[0] == kinds[1]
        if same and kinds[0] in _NUMBERS and not (node.name == "_%_" and kinds[0] == "double"):
            return types[0]
        if node.name == "_+_" and same and kinds[0] in ("string", "bytes", "list", DURATION.kind):
            return types[0]
        if node.name in ("_+_", "_-_") and set(kinds) == {TIMESTAMP.kind, DURATION.kind}:
            return TIMESTAMP
        if node.name == "_-_" and same and kinds[0] in (TIMESTAMP.kind, DURATION.kind):
            return DURATION
        return self.no_overload(node, types)

    def comprehension(self, node: CallExpr) -> Type | None:
        assert node.target is not None
        names = [arg.name for arg in node.args[:2] if isinstance(arg, Ident)]
        if not names or len(node.args) < 2:
            return None
        target = self.visit(node.target)
        if node.name in ("optMap", "optFlatMap"):
            self.scoped({names[0]: DYN}, node.args[1:])
            return Type("optional")
        if target.kind not in ("list", "map", "dyn"):
            wanted = "(must be list, map, or dynamic)"
            return self.fail(node, f"expression of type '{target}' cannot be range of a comprehension {wanted}")
        two = len(node.args) >= 3 and len(names) == 2 and node.name != "map"
        element = target.item or DYN
        if two:
            bound = {names[0]: INT if target.kind == "list" else _member(target), names[1]: element}
        else:
            bound = {names[0]: _member(target) if target.kind == "map" else element}
        results = self.scoped(bound, node.args[2 if two else 1 :])
        if node.name in ("all", "exists", "exists_one", "existsOne"):
            if results[0].kind not in ("bool", "dyn"):
                return self.fail(node, f"expected type 'bool' but found '{results[0]}'")
            return BOOL
        if node.name == "filter":
            return Type("list", bound[names[0]])
        return Type("list", results[-1]) if node.name in ("map", "transformList") else Type("map", results[-1])

    def scoped(self, bound: dict[str, Type], nodes: list[Expr]) -> list[Type]:
        before = self.variables
        self.variables = {**before, **bound}
        found = [self.visit(node) for node in nodes]
        self.variables = before
        return found

    def function(self, node: CallExpr) -> Type:
        target = node.target
        if isinstance(target, Ident) and target.name in NAMESPACES and target.name not in self.variables:
            if f"{target.name}.{node.name}" not in FUNCTIONS:
                return self.fail(node, f"undeclared reference to '{target.name}.{node.name}' (in container '')")
            for arg in node.args:
                self.visit(arg)
            return Type("optional") if target.name == "optional" else DYN if target.name != "sets" else BOOL
        receiver = self.visit(target) if target is not None else None
        arguments = [self.visit(arg) for arg in node.args]
        if node.name not in (FUNCTIONS if target is None else METHODS):
            return self.fail(node, f"undeclared reference to '{node.name}' (in container '')")
        if receiver is not None and node.name in _ON_STRINGS and receiver.kind not in ("string", "dyn"):
            shown = ", ".join(map(str, arguments))
            text = f"found no matching overload for '{node.name}' applied to '{receiver}.({shown})'"
            return self.fail(node, text)
        if node.name in ("min", "max", "sum") and receiver is not None:
            return receiver.item or DYN
        return _RETURNS.get(node.name, DYN)


def _member(container: Type) -> Type:
    """What `in` asks for: a key of a map, an item of a list."""
    return container.key or STRING if container.kind == "map" else container.item or DYN


def _common(types: list[Type]) -> Type:
    same = types and all(str(one) == str(types[0]) for one in types)
    return types[0] if same else DYN


def _agree(one: Type, other: Type) -> bool:
    free = ("dyn", "null_type", "optional")
    if one.kind in free or other.kind in free:
        return True
    if one.kind != other.kind:
        return {one.kind, other.kind} == {"object", "map"}
    if one.kind in ("list", "map") and one.item and other.item:
        return _agree(one.item, other.item)
    return True


def _literal(value: Any) -> Type:
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, Uint):
        return UINT
    return {int: INT, float: DOUBLE, str: STRING, bytes: BYTES, type(None): NULL}[type(value)]
