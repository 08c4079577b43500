"""What `--help` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from danlu.cli import layout
from danlu.cli.language import Text, language

USAGE = Text("usage: {line}", "用法：{line}")
OPTIONS = Text("OPTIONS", "选项")
COMMAND = Text("COMMAND", "命令")
HEADINGS = {
    "arguments": Text("arguments:", "参数："),
    "commands": Text("commands:", "命令："),
    "options": Text("options:", "选项："),
}


def sentence(about: str) -> str:
    return about[:1].upper() + about[1:] + ("。" if language() == "zh" else ".")


def of_command(ctx: click.Context, about: Text, more: Text | None) -> str:
    pieces = [f"[{OPTIONS()}]", *(piece for one in ctx.command.params for piece in one.get_usage_pieces(ctx))]
    return "\n".join(_page(ctx, " ".join(pieces), about, {"arguments": _arguments(ctx)}, more))


def of_group(ctx: click.Context, about: Text, commands: Mapping[str, Text]) -> str:
    rows = [(name, text()) for name, text in commands.items()]
    return "\n".join(_page(ctx, f"[{OPTIONS()}] [{COMMAND()}]", about, {"commands": rows}))


def _page(
    ctx: click.Context, pieces: str, about: Text, parts: Mapping[str, list[tuple[str, str]]], more: Text | None = None
) -> Iterator[str]:
    most = min(layout.columns(), layout.WIDEST)
    yield from layout.wrapped(USAGE(line=f"{ctx.command_path} {pieces}"), most)
    yield ""
    yield from layout.wrapped(sentence(about()), most)
    for name, rows in {**parts, "options": _options(ctx)}.items():
        if rows:
            yield ""
            yield HEADINGS[name]()
            yield from layout.definitions(rows, most)
    if more is not None:
        yield ""
        for line in more().splitlines():
            yield from layout.wrapped(line, most) if not line.startswith(" ") else [line]


def _arguments(ctx: click.Context) -> list[tuple[str, str]]:
    found = [one for one in ctx.command.params if isinstance(one, click.Argument)]
    return [(one.make_metavar(ctx), one.help or "") for one in found]


def _options(ctx: click.Context) -> list[tuple[str, str]]:
    found = [one for one in ctx.command.params if isinstance(one, click.Option) and not one.hidden]
    return [(one.get_help_spec(ctx), one.help or "") for one in found]
