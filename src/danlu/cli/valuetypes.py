"""What the value of an option may be; what it must not be is said in the language of whoever typed it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from danlu.cli.language import Text

NOT_WHOLE = Text("{value!r} is not a whole number", "{value!r} 不是整数")
NOT_A_NUMBER = Text("{value!r} is not a number", "{value!r} 不是数字")
NONE_OF = Text("{value!r} is none of {choices}", "{value!r} 不在可选值之列：{choices}")


class Whole(click.ParamType[int]):
    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return int(value)
        except ValueError:
            self.fail(NOT_WHOLE(value=value), param, ctx)


class Number(click.ParamType[float]):
    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return float(value)
        except ValueError:
            self.fail(NOT_A_NUMBER(value=value), param, ctx)


class Choice(click.ParamType[str]):
    name = "choice"

    def __init__(self, choices: Sequence[str]) -> None:
        self.choices = choices
        self.metavar = "|".join(choices)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices and not (param is not None and value == param.default):
            self.fail(NONE_OF(value=value, choices=", ".join(self.choices)), param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(one) for one in self.choices if one.startswith(incomplete)]


WHOLE, NUMBER = Whole(), Number()
PATH = click.Path(path_type=Path)
