"""Syntax trees to closures. `compile_tree(tree)(variables)` gives the value or raises CelError."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from danlu.meta.cel import extensions, library
from danlu.meta.cel.costs import CHARACTERS, Budget
from danlu.meta.cel.parser import (
    RESERVED,
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
    Uint,
)
from danlu.meta.cel.values import (
    NONE,
    CelError,
    MapList,
    NoSuchOverload,
    Optional,
    SetList,
    TypeValue,
    checked,
    equal,
    is_number,
    within_range,
)

Variables = dict[str, Any]
Closure = Callable[[Variables], Any]
Binary = Callable[[Any, Any, Budget], Any]

FUNCTIONS = {**library.GLOBAL, **extensions.GLOBAL}
METHODS = {**library.METHODS, **extensions.METHODS}
NAMESPACES = frozenset(name.split(".")[0] for name in FUNCTIONS if "." in name)
TYPE_NAMES = {
    name: TypeValue(name)
    for name in ("int", "uint", "double", "bool", "string", "bytes", "list", "map", "null_type", "type")
}
COMPREHENSIONS = frozenset(
    {"all", "exists", "exists_one", "existsOne", "map", "filter", "transformList", "transformMap"}
)
MACROS = COMPREHENSIONS | {"optMap", "optFlatMap"}
BUDGET = "\0budget"  # the variable that holds what the evaluation may still cost

_KEYWORDS = RESERVED | {"true", "false", "null", "in"}
_ESCAPES = {"__dot__": ".", "__dash__": "-", "__slash__": "/", "__underscores__": "__"}


def unescaped(field: str) -> str:
    """The property that a field name in an expression stands for."""
    if "__" not in field:
        return field
    if field.startswith("__") and field.endswith("__") and field[2:-2] in _KEYWORDS:
        return field[2:-2]
    for written, meant in _ESCAPES.items():
        field = field.replace(written, meant)
    return field


def compile_tree(node: Expr) -> Closure:
    match node:
        case Literal():
            value = node.value
            return lambda _: value
        case Ident():
            return _ident(node.name)
        case Select():
            return _select(node)
        case Index():
            return _index(node)
        case OptionalEntry():
            return _optional_entry(node)
        case ListNode():
            return _list(node)
        case MapNode():
            return _map(node)
        case MessageNode():
            return _message(node)
        case CallExpr():
            return _call(node)
    raise TypeError(node)


def _list(node: ListNode) -> Closure:
    items = [compile_tree(item) for item in node.items]

    def make(env: Variables) -> list[Any]:
        env[BUDGET].spend(len(items))
        return [item(env) for item in items]

    def make_some(env: Variables) -> list[Any]:
        return [item for item in make(env) if item is not ABSENT]

    return make_some if any(isinstance(item, OptionalEntry) for item in node.items) else make


def _map(node: MapNode) -> Closure:
    entries = [(compile_tree(key), compile_tree(value)) for key, value in node.entries]

    def make(env: Variables) -> dict[Any, Any]:
        env[BUDGET].spend(len(entries))
        made: dict[Any, Any] = {}
        for key, value in entries:
            name = _map_key(key(env))
            if name in made and not isinstance(name, bool):  # which Python takes for 0 and 1
                raise CelError(f"Failed with repeated key: {name}")
            found = value(env)
            if found is not ABSENT:
                made[name] = found
        return made

    return make


ABSENT = object()
"""What an entry that is not to be there evaluates to; no expression else does."""


def _optional_entry(node: OptionalEntry) -> Closure:
    value = compile_tree(node.value)

    def unpack(env: Variables) -> Any:
        found = value(env)
        if not isinstance(found, Optional):
            raise NoSuchOverload
        return found.value if found.present else ABSENT

    return unpack


def _message(node: MessageNode) -> Closure:
    fields = [(unescaped(name), optional, compile_tree(value)) for name, optional, value in node.entries]

    def make(env: Variables) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for name, optional, value in fields:
            found = value(env)
            if not optional:
                made[name] = found
            elif not isinstance(found, Optional):
                raise NoSuchOverload
            elif found.present:
                made[name] = found.value
        return made

    return make


def _map_key(key: Any) -> Any:
    if not isinstance(key, str | int | bool):
        raise CelError("unsupported key type")
    return key


def _ident(name: str) -> Closure:
    constant = TYPE_NAMES.get(name)

    def look_up(env: Variables) -> Any:
        try:
            return env[name]
        except KeyError:
            if constant is not None:
                return constant
            raise CelError(f"no such attribute(s): {name}") from None

    return look_up


def _field(target: Any, field: str, plain: str) -> Any:
    if target.__class__ is dict:
        if plain in target:
            return target[plain]
        if field in target:
            return target[field]
        raise CelError(f"no such key: {field}")
    if isinstance(target, Optional):
        return _optional_field(target, field, plain)
    raise NoSuchOverload


def _optional_field(target: Any, field: str, plain: str) -> Optional:
    value = target.value if isinstance(target, Optional) else target
    if isinstance(target, Optional) and not target.present:
        return NONE
    if isinstance(value, dict):
        for key in (plain, field):
            if key in value:
                return Optional(True, value[key])
    return NONE


def _select(node: Select) -> Closure:
    target, field, plain = compile_tree(node.target), node.field, unescaped(node.field)
    if node.optional:
        return lambda env: _optional_field(target(env), field, plain)
    return lambda env: _field(target(env), field, plain)


def _at(target: Any, key: Any) -> Any:
    if isinstance(target, Optional):
        if not target.present:
            return NONE
        return _optional_at(target.value, key)
    if isinstance(target, list):
        if isinstance(key, float) and key.is_integer():
            key = int(key)
        if not isinstance(key, int) or isinstance(key, bool):
            raise NoSuchOverload
        if not 0 <= key < len(target):
            raise CelError(f"index out of bounds: {key}")
        return target[key]
    if isinstance(target, dict):
        if key not in target:
            raise CelError(f"no such key: {key}")
        return target[key]
    raise NoSuchOverload


def _optional_at(target: Any, key: Any) -> Optional:
    try:
        found = _at(target, key)
    except CelError:
        return NONE
    return found if isinstance(found, Optional) else Optional(True, found)


def _index(node: Index) -> Closure:
    target, key = compile_tree(node.target), compile_tree(node.key)
    if node.optional:
        return lambda env: _optional_at(target(env), key(env))
    return lambda env: _at(target(env), key(env))


# -- operators


def _add(one: Any, other: Any, budget: Budget) -> Any:
    if is_number(one) and is_number(other):
        if isinstance(one, float) or isinstance(other, float):
            return float(one) + float(other)
        return _whole(one, one + other)
    if isinstance(one, list) and isinstance(other, list):
        budget.spend(len(one) + len(other))
        return _joined(one, other, budget)
    for kind in (str, bytes):
        if isinstance(one, kind) and isinstance(other, kind):
            budget.spend((len(one) + len(other)) // CHARACTERS)
            return one + other  # type: ignore[operator]
    if isinstance(one, timedelta) and isinstance(other, timedelta):
        return within_range(one + other)
    if isinstance(one, datetime) and isinstance(other, timedelta):
        return _moved(one, other)
    if isinstance(one, timedelta) and isinstance(other, datetime):
        return _moved(other, one)
    raise NoSuchOverload


def _moved(moment: datetime, span: timedelta) -> datetime:
    try:
        return moment + span
    except OverflowError:
        raise CelError("timestamp overflow") from None


def _whole(one: int, result: int) -> int:
    """The result of an operation on whole numbers is of the kind that they are."""
    return _unsigned(result) if isinstance(one, Uint) else checked(result)


def _unsigned(value: int) -> Uint:
    if not 0 <= value < 2**64:
        raise CelError("unsigned integer overflow")
    return Uint(value)


def _joined(one: list[Any], other: list[Any], budget: Budget) -> list[Any]:
    """Lists of type set and map join as Kubernetes merges them: what is already there stays in its place."""
    if isinstance(one, SetList):
        return SetList([*one, *(item for item in other if not any(equal(item, known, budget) for known in one))])
    if isinstance(one, MapList) and isinstance(other, MapList):
        budget.spend_on(one)
        budget.spend_on(other)
        merged = MapList(list({**one.by_key(), **other.by_key()}.values()))
        merged.keys = one.keys
        return merged
    return [*one, *other]


def _subtract(one: Any, other: Any, budget: Budget) -> Any:
    if is_number(one) and is_number(other):
        if isinstance(one, float) or isinstance(other, float):
            return float(one) - float(other)
        return _whole(one, one - other)
    if isinstance(one, datetime) and isinstance(other, timedelta):
        return _moved(one, -other)
    if isinstance(one, datetime) and isinstance(other, datetime):
        return within_range(one - other)
    if isinstance(one, timedelta) and isinstance(other, timedelta):
        return within_range(one - other)
    raise NoSuchOverload


def _multiply(one: Any, other: Any, budget: Budget) -> Any:
    if not (is_number(one) and is_number(other)):
        raise NoSuchOverload
    if isinstance(one, float) or isinstance(other, float):
        return float(one) * float(other)
    return _whole(one, one * other)


def _divide(one: Any, other: Any, budget: Budget) -> Any:
    if not (is_number(one) and is_number(other)):
        raise NoSuchOverload
    if isinstance(one, float) or isinstance(other, float):
        if other == 0:
            return float("nan") if one == 0 else float("inf") * (1 if one > 0 else -1)
        return one / other
    if other == 0:
        raise CelError("division by zero")
    return _whole(one, abs(one) // abs(other) * (1 if (one < 0) == (other < 0) else -1))


def _modulo(one: Any, other: Any, budget: Budget) -> Any:
    if not (isinstance(one, int) and isinstance(other, int)) or isinstance(one, bool) or isinstance(other, bool):
        raise NoSuchOverload
    if other == 0:
        raise CelError("modulus by zero")
    return _whole(one, abs(one) % abs(other) * (1 if one >= 0 else -1))


def _ordering(compare: Callable[[Any, Any], Any]) -> Binary:
    def apply(one: Any, other: Any, budget: Budget) -> bool:
        comparable = (is_number(one) and is_number(other)) or (
            type(one) is type(other) and isinstance(one, str | bytes | bool | datetime | timedelta)
        )
        if not comparable:
            raise NoSuchOverload
        if one.__class__ is str:
            budget.spend(min(len(one), len(other)) // CHARACTERS)
        return bool(compare(one, other))

    return apply


def _within(one: Any, other: Any, budget: Budget) -> bool:
    if isinstance(other, list):
        return any(equal(one, item, budget) for item in other)
    if isinstance(other, dict):
        return isinstance(one, str | int | float | bool) and one in other
    raise NoSuchOverload


_BINARY: dict[str, Binary] = {
    "_==_": equal,
    "_!=_": lambda one, other, budget: not equal(one, other, budget),
    "_<_": _ordering(lambda one, other: one < other),
    "_<=_": _ordering(lambda one, other: one <= other),
    "_>_": _ordering(lambda one, other: one > other),
    "_>=_": _ordering(lambda one, other: one >= other),
    "_+_": _add,
    "_-_": _subtract,
    "_*_": _multiply,
    "_/_": _divide,
    "_%_": _modulo,
    "@in": _within,
}


def _negated(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NoSuchOverload
    return not value


def _minus(value: Any) -> Any:
    if not is_number(value):
        if isinstance(value, timedelta):
            return -value
        raise NoSuchOverload
    return -value if isinstance(value, float) else checked(-value)


def _call(node: CallExpr) -> Closure:
    name = node.name
    if name in ("_&&_", "_||_"):
        return _logic(compile_tree(node.args[0]), compile_tree(node.args[1]), decisive=name == "_||_")
    if name == "_?_:_":
        test, yes, no = (compile_tree(arg) for arg in node.args)
        return lambda env: yes(env) if _truth(test(env)) else no(env)
    operator = _BINARY.get(name)
    if operator is not None:
        return _binary(operator, compile_tree(node.args[0]), compile_tree(node.args[1]))
    if name in ("!_", "-_"):
        operand, apply = compile_tree(node.args[0]), _negated if name == "!_" else _minus
        return lambda env: apply(operand(env))
    if node.target is None and name == "has":
        return _has(node)
    if node.target is not None and name in MACROS and node.args and isinstance(node.args[0], Ident):
        macro = _macro(node)
        if macro is not None:
            return macro
    return _function(node)


def _function(node: CallExpr) -> Closure:
    args = [compile_tree(arg) for arg in node.args]
    target = node.target
    if isinstance(target, Ident) and f"{target.name}.{node.name}" in FUNCTIONS:
        return _applied(FUNCTIONS[f"{target.name}.{node.name}"], args)
    if target is None:
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise CelError(f"undeclared reference to '{node.name}' (in container '')")
        return _applied(function, args)
    method = METHODS.get(node.name)
    if method is None:
        raise CelError(f"undeclared reference to '{node.name}' (in container '')")
    return _applied(method, [compile_tree(target), *args])


def _binary(operator: Binary, left: Closure, right: Closure) -> Closure:
    def apply(env: Variables) -> Any:
        one, other, budget = left(env), right(env), env[BUDGET]
        budget.spend(1)
        try:
            return operator(one, other, budget)
        except ArithmeticError as error:
            raise CelError(str(error)) from None

    return apply


def _applied(function: Callable[..., Any], args: list[Closure]) -> Closure:
    counts, free = hasattr(function, "takes_budget"), hasattr(function, "is_free")

    def apply(env: Variables) -> Any:
        values = [arg(env) for arg in args]
        budget = env[BUDGET]
        budget.spend(1)
        if not free:
            for value in values:
                budget.spend_on(value)
        try:
            return function(budget, *values) if counts else function(*values)
        except (TypeError, AttributeError):
            raise NoSuchOverload from None
        except (ValueError, ArithmeticError) as error:  # a number that the conversion has no room for
            raise CelError(str(error)) from None

    return apply


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NoSuchOverload
    return value


def _logic(left: Closure, right: Closure, *, decisive: bool) -> Closure:
    """A side that decides wins over an error of the other side, whichever comes first."""

    def apply(env: Variables) -> bool:
        try:
            if _truth(left(env)) is decisive:
                return decisive
        except CelError as error:
            if _truth(right(env)) is decisive:
                return decisive
            raise error from None
        return _truth(right(env))

    return apply


def _has(node: CallExpr) -> Closure:
    argument = node.args[0] if node.args else None
    if len(node.args) != 1 or not isinstance(argument, Select):
        raise CelError("invalid argument to has() macro")
    target, field, plain = compile_tree(argument.target), argument.field, unescaped(argument.field)

    def apply(env: Variables) -> bool:
        value = target(env)
        if isinstance(value, Optional):
            return _optional_field(value, field, plain).present
        if not isinstance(value, dict):
            raise NoSuchOverload
        return plain in value or field in value

    return apply


# -- macros


def _macro(node: CallExpr) -> Closure | None:
    names = [arg.name for arg in node.args[:2] if isinstance(arg, Ident)]
    count = len(node.args)
    target = compile_tree(node.target) if node.target is not None else None
    if target is None:
        return None
    if node.name in ("optMap", "optFlatMap") and count == 2:
        return _optional_map(target, names[0], compile_tree(node.args[1]), flat=node.name == "optFlatMap")
    two = count >= 3 and len(names) == 2 and node.name != "map"
    rest = [compile_tree(arg) for arg in node.args[2 if two else 1 :]]
    if not rest:
        return None
    second = names[1] if two else None
    if node.name in ("all", "exists"):
        return _quantifier(target, names[0], second, rest[0], decisive=node.name == "exists")
    if node.name in ("exists_one", "existsOne"):
        return _exists_one(target, names[0], second, rest[0])
    if node.name == "filter":
        return _collected(target, names[0], None, rest[0], None)
    if node.name in ("map", "transformList"):
        return _collected(target, names[0], second, rest[0] if len(rest) == 2 else None, rest[-1])
    if node.name == "transformMap" and second is not None:
        return _transform_map(target, names[0], second, rest[0] if len(rest) == 2 else None, rest[-1])
    return None


def _steps(env: Variables, values: Any, first: str, second: str | None) -> Iterator[tuple[Any, Any]]:
    """Binds the loop variables for each element; what they hid comes back afterwards."""
    if isinstance(values, dict):
        pairs: Any = values.items() if second else ((key, key) for key in values)
    elif isinstance(values, list):
        pairs = enumerate(values)
    else:
        raise NoSuchOverload
    hidden = {name: env[name] for name in (first, second) if name is not None and name in env}
    budget = env[BUDGET]
    try:
        for key, value in pairs:
            budget.spend(1)
            if second is None:
                env[first] = value
            else:
                env[first], env[second] = key, value
            yield key, value
    finally:
        env.pop(first, None)
        if second is not None:
            env.pop(second, None)
        env.update(hidden)


def _quantifier(target: Closure, first: str, second: str | None, test: Closure, *, decisive: bool) -> Closure:
    def apply(env: Variables) -> bool:
        failed: CelError | None = None
        decided = False
        steps = _steps(env, target(env), first, second)
        for _ in steps:
            try:
                if _truth(test(env)) is decisive:
                    decided = True
                    break
            except CelError as error:
                failed = error
        steps.close()  # type: ignore[attr-defined]
        if decided:
            return decisive
        if failed is not None:
            raise failed
        return not decisive

    return apply


def _exists_one(target: Closure, first: str, second: str | None, test: Closure) -> Closure:
    return lambda env: sum(_truth(test(env)) for _ in _steps(env, target(env), first, second)) == 1


def _collected(
    target: Closure, first: str, second: str | None, test: Closure | None, change: Closure | None
) -> Closure:
    def apply(env: Variables) -> list[Any]:
        found = []
        for _, value in _steps(env, target(env), first, second):
            if test is None or _truth(test(env)):
                found.append(change(env) if change is not None else value)
        return found

    return apply


def _transform_map(target: Closure, first: str, second: str, test: Closure | None, change: Closure) -> Closure:
    def apply(env: Variables) -> dict[Any, Any]:
        found = {}
        for key, _ in _steps(env, target(env), first, second):
            if test is None or _truth(test(env)):
                found[key] = change(env)
        return found

    return apply


def _optional_map(target: Closure, name: str, change: Closure, *, flat: bool) -> Closure:
    def apply(env: Variables) -> Optional:
        optional = target(env)
        if not isinstance(optional, Optional):
            raise NoSuchOverload
        if not optional.present:
            return NONE
        result = change({**env, name: optional.value})
        return result if flat else Optional(True, result)

    return apply
