"""CEL text to syntax trees. Macros (`has`, `all`, `map` …) are left as calls; the evaluator knows them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any


class SyntaxProblem(Exception):
    def __init__(self, position: int, message: str) -> None:
        super().__init__(message)
        self.position = position
        self.message = message


@dataclass(slots=True)
class Expr:
    """`position` is where an error about the node points: the operator, the dot, the bracket."""

    position: int


@dataclass(slots=True)
class Literal(Expr):
    value: Any


@dataclass(slots=True)
class Ident(Expr):
    name: str


@dataclass(slots=True)
class Select(Expr):
    target: Expr
    field: str
    optional: bool = False


@dataclass(slots=True)
class Index(Expr):
    target: Expr
    key: Expr
    optional: bool = False


@dataclass(slots=True)
class CallExpr(Expr):
    """A function, a method (`target`), or an operator by its CEL name (`_==_`)."""

    name: str
    target: Expr | None
    args: list[Expr]


@dataclass(slots=True)
class OptionalEntry(Expr):
    """`[?x]` and `{?key: x}`: there only if the optional has a value."""

    value: Expr


@dataclass(slots=True)
class ListNode(Expr):
    items: list[Expr]


@dataclass(slots=True)
class MapNode(Expr):
    entries: list[tuple[Expr, Expr]]


@dataclass(slots=True)
class MessageNode(Expr):
    """`Object.spec{replicas: 3, ?paused: x}`: a value of a named type. Entries: (field, optional, value)."""

    name: str
    entries: list[tuple[str, bool, Expr]]


class Uint(int):
    """An unsigned integer: a type of its own in CEL."""

    __slots__ = ()


_TOKENS = re.compile(
    r"""
    (?P<space>[\t\n\f\r\x20]+|//[^\n]*)
  | (?P<string>[bB]?[rR]?(?:\"{3}(?:[^\\]|\\.)*?\"{3}|'{3}(?:[^\\]|\\.)*?'{3}|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      |[rR][bB]?(?:"[^"\n]*"|'[^'\n]*'))
  | (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|\d+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|\d+)
  | (?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
  | (?P<op>&&|\|\||==|!=|<=|>=|\.\?|\[\?|[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE | re.DOTALL,
)
RESERVED = frozenset(
    ("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
     "namespace", "return", "var", "void", "while")
)  # fmt: skip
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("<", "<=", ">=", ">", "==", "!=", "in"),
    ("+", "-"),
    ("*", "/", "%"),
)
_LOGIC = ("_||_", "_&&_")  # of the first levels
_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ESCAPE = re.compile(
    r"\\(?:([abfnrtv\\?\"'`])|[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2}))"
)
_EXPRESSION = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
LONGEST = 100_000  # characters of an expression; as cel-go
# Of the tree. cel-go stops at 250; here checking a level takes four calls, of which Python allows a thousand.
MOST_DEPTH = 100
MOST_NESTED = 50  # brackets in brackets, each of which is nine calls of the parser
_TOO_DEEP = "expression recursion limit exceeded: {}"


@dataclass(slots=True)
class _Token:
    kind: str
    text: str
    position: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while position < len(text):
        match = _TOKENS.match(text, position)
        if match is None:
            raise SyntaxProblem(position, f"Syntax error: token recognition error at: '{text[position]}'")
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match[0], position))
        position = match.end()
    found.append(_Token("end", "<EOF>", len(text)))
    return found


def parse(text: str) -> Expr:
    """Raises SyntaxProblem."""
    if len(text) > LONGEST:
        problem = f"expression code point size exceeds limit: size: {len(text)}, limit {LONGEST}"
        raise SyntaxProblem(0, problem)
    return _Parser(_tokens(text)).whole()


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.index = 0
        self.depth = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.index]

    def whole(self) -> Expr:
        node = self.expression()
        if self.token.kind != "end":
            raise self.unexpected("<EOF>")
        level, depth = [node], 0
        while level:  # a chain such as `a.b.c` or `a + b + c` is as deep as it is long, without a bracket
            depth += 1
            if depth > MOST_DEPTH:
                raise SyntaxProblem(level[0].position, _TOO_DEEP.format(MOST_DEPTH))
            level = [child for one in level for child in children(one)]
        return node

    def unexpected(self, expected: str = "") -> SyntaxProblem:
        text = f"Syntax error: mismatched input '{self.token.text}' expecting {expected or _EXPRESSION}"
        return SyntaxProblem(self.token.position, text)

    def taken(self, *texts: str) -> _Token | None:
        token = self.token
        if token.text in texts and token.kind in ("op", "name"):
            self.index += 1
            return token
        return None

    def expect(self, text: str) -> _Token:
        token = self.taken(text)
        if token is None:
            raise self.unexpected(f"'{text}'")
        return token

    def expression(self) -> Expr:
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise SyntaxProblem(self.token.position, _TOO_DEEP.format(MOST_NESTED))
        node = self.binary(0)
        question = self.taken("?")
        if question is not None:
            yes = self.binary(0)
            self.expect(":")
            no = self.expression()
            node = CallExpr(question.position, "_?_:_", None, [node, yes, no])
        self.depth -= 1
        return node

    def binary(self, level: int) -> Expr:
        if level == len(_LEVELS):
            return self.unary()
        node = self.binary(level + 1)
        if level < len(_LOGIC):
            return self.logic(level, node)
        while (token := self.taken(*_LEVELS[level])) is not None:
            right = self.binary(level + 1)
            name = "@in" if token.text == "in" else f"_{token.text}_"
            node = CallExpr(token.position, name, None, [node, right])
        return node

    def logic(self, level: int, first: Expr) -> Expr:
        """A chain of && or || as a balanced tree: rules made by programs have hundreds of terms."""
        terms, positions = [first], []
        while (token := self.taken(*_LEVELS[level])) is not None:
            positions.append(token.position)
            terms.append(self.binary(level + 1))
        return _balanced(_LOGIC[level], terms, positions)

    def unary(self) -> Expr:
        token = self.taken("!", "-")
        if token is None:
            return self.member()
        self.depth += 1
        if self.depth > MOST_NESTED:
            raise SyntaxProblem(token.position, _TOO_DEEP.format(MOST_NESTED))
        operand = self.unary()
        self.depth -= 1
        if (
            token.text == "-"
            and isinstance(operand, Literal)
            and type(operand.value) in (int, float)
            and operand.value >= 0
        ):
            return Literal(token.position, -operand.value)
        return CallExpr(token.position, "!_" if token.text == "!" else "-_", None, [operand])

    def member(self) -> Expr:
        node = self.primary()
        while True:
            if self.token.text == "{" and (name := _type_name(node)):
                node = MessageNode(self.expect("{").position, name, self.message_entries())
                continue
            token = self.taken(".", ".?", "[", "[?")
            if token is None:
                return node
            if token.text in (".", ".?"):
                node = self.selection(node, token)
            else:
                key = self.expression()
                self.expect("]")
                node = Index(token.position, node, key, token.text == "[?")

    def selection(self, target: Expr, dot: _Token) -> Expr:
        name = self.token
        if name.kind != "name":
            raise self.unexpected("IDENTIFIER")
        self.index += 1
        opening = self.taken("(") if dot.text == "." else None
        if opening is not None:
            return CallExpr(opening.position, name.text, target, self.arguments(")"))
        return Select(dot.position, target, name.text, dot.text == ".?")

    def arguments(self, closing: str) -> list[Expr]:
        items: list[Expr] = []
        while self.taken(closing) is None:
            if items:
                self.expect(",")
                if self.taken(closing) is not None:
                    break
            items.append(self.expression())
        return items

    def items(self, opening: _Token) -> list[Expr]:
        found: list[Expr] = []
        optional = opening if opening.text == "[?" else self.taken("?")
        while self.taken("]") is None:
            if found:
                self.expect(",")
                if self.taken("]") is not None:
                    break
                optional = self.taken("?")
            found.append(self.entry(optional))
        return found

    def entry(self, optional: _Token | None) -> Expr:
        value = self.expression()
        return value if optional is None else OptionalEntry(optional.position, value)

    def primary(self) -> Expr:
        token = self.token
        self.index += 1
        if token.kind in _NUMBERS:
            try:
                return Literal(token.position, _NUMBERS[token.kind](token.text))
            except ValueError:
                raise SyntaxProblem(token.position, f"invalid {token.kind} literal") from None
        if token.kind == "string":
            return Literal(token.position, _string(token))
        if token.text == "(":
            node = self.expression()
            self.expect(")")
            return node
        if token.text in ("[", "[?"):
            return ListNode(token.position, self.items(token))
        if token.text == "{":
            return MapNode(token.position, self.entries())
        if token.text == ".":
            token = self.token
            self.index += 1
        if token.kind == "name":
            return self.named(token)
        self.index -= 1
        raise self.unexpected()

    def named(self, token: _Token) -> Expr:
        constant = {"true": True, "false": False, "null": None}
        if token.text in constant:
            return Literal(token.position, constant[token.text])
        if token.text in RESERVED:
            raise SyntaxProblem(token.position, f"reserved identifier: {token.text}")
        opening = self.taken("(")
        if opening is not None:
            return CallExpr(opening.position, token.text, None, self.arguments(")"))
        return Ident(token.position, token.text)

    def message_entries(self) -> list[tuple[str, bool, Expr]]:
        found: list[tuple[str, bool, Expr]] = []
        while self.taken("}") is None:
            if found:
                self.expect(",")
                if self.taken("}") is not None:
                    break
            optional = self.taken("?") is not None
            field = self.token
            if field.kind != "name":
                raise self.unexpected("IDENTIFIER")
            self.index += 1
            self.expect(":")
            found.append((field.text, optional, self.expression()))
        return found

    def entries(self) -> list[tuple[Expr, Expr]]:
        found: list[tuple[Expr, Expr]] = []
        while self.taken("}") is None:
            if found:
                self.expect(",")
                if self.taken("}") is not None:
                    break
            optional = self.taken("?")
            key = self.expression()
            self.expect(":")
            found.append((key, self.entry(optional)))
        return found


_NUMBERS: dict[str, Any] = {
    "int": lambda text: int(text, 16 if text[:2] in ("0x", "0X") else 10),
    "uint": lambda text: Uint(int(text[:-1], 16 if text[:2] in ("0x", "0X") else 10)),
    "float": float,
}


def _balanced(name: str, terms: list[Expr], positions: list[int]) -> Expr:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    left, right = _balanced(name, terms[:half], positions[: half - 1]), _balanced(name, terms[half:], positions[half:])
    return CallExpr(positions[half - 1], name, None, [left, right])


def _type_name(node: Expr) -> str:
    """`a.b.c`, which before a brace is the name of a type."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.optional:
        inner = _type_name(node.target)
        return f"{inner}.{node.field}" if inner else ""
    return ""


def _string(token: _Token) -> str | bytes:
    text = token.text
    start = 0
    while text[start] not in "'\"":
        start += 1
    prefix, body = text[:start].lower(), text[start:]
    body = body[3:-3] if len(body) >= 6 and body[:3] in ('"""', "'''") else body[1:-1]
    if "b" in prefix:
        return body.encode() if "r" in prefix else _unescape_bytes(body, token.position)
    return body if "r" in prefix else _unescape(body, token.position)


def _unescape(body: str, position: int) -> str:
    if "\\" not in body:
        return body

    def one(found: re.Match[str]) -> str:
        if found[1]:
            return _SIMPLE_ESCAPES.get(found[1], found[1])
        digits = found[2] or found[3] or found[4]
        return chr(int(digits, 16)) if digits else chr(int(found[5], 8))

    try:
        result = _ESCAPE.sub(one, body)
        result.encode()  # half a character is none
    except (ValueError, OverflowError):
        raise SyntaxProblem(position, f"Syntax error: invalid string escape in {body!r}") from None
    if re.search(r"\\", _ESCAPE.sub("", body)):
        raise SyntaxProblem(position, f"Syntax error: invalid string escape in {body!r}")
    return result


def _unescape_bytes(body: str, position: int) -> bytes:
    """In bytes, \\xff and \\377 are one byte each; what is no escape stands for its UTF-8."""
    parts, end = [], 0
    for found in _ESCAPE.finditer(body):
        number = int(found[2], 16) if found[2] else int(found[5], 8) if found[5] else None
        parts.append(_unescape(body[end : found.start()], position).encode())
        parts.append(_unescape(found[0], position).encode() if number is None else bytes([number & 0xFF]))
        end = found.end()
    return b"".join([*parts, _unescape(body[end:], position).encode()])


def children(node: Expr) -> list[Expr]:
    match node:
        case Select():
            return [node.target]
        case Index():
            return [node.target, node.key]
        case MessageNode():
            return [value for _, _, value in node.entries]
        case CallExpr():
            return [*([node.target] if node.target is not None else ()), *node.args]
        case OptionalEntry():
            return [node.value]
        case ListNode():
            return node.items
        case MapNode():
            return [part for entry in node.entries for part in entry]
    return []


def identifiers(node: Expr) -> set[str]:
    """Every free-standing name in the tree, bound ones included."""
    found: set[str] = set()
    pending = [node]
    while pending:
        one = pending.pop()
        if isinstance(one, Ident):
            found.add(one.name)
        pending += children(one)
    return found
