"""Commands as their files declare them, on Click: a dataclass of options, and `run`, which is given one.

    @dataclass(frozen=True)
    class Options(CommandOptions):
        keep_pods: bool = flag("--keep-pods", help=Text("leave the pods running", "让 Pod 继续运行"))

    def run(options: Options) -> int: ...

A file that has `COMMANDS` instead is a group of further commands, of which `DEFAULT` is meant when none is named.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from danlu.cli import helptext
from danlu.cli.commands import Entry
from danlu.cli.language import Text
from danlu.cli.usageerrors import ExtraWords
from danlu.cli.valuetypes import PATH

PARAMETER = "parameter"
HELP = Text("show this help", "显示本帮助")


def option(
    *names: str,
    help: Text | None,
    metavar: str = "",
    type: click.ParamType[Any] | None = None,
    default: Any = None,
    multiple: bool = False,
) -> Any:
    """`help`: None hides it from people."""

    def parameter(name: str) -> click.Parameter:
        shown = metavar or getattr(type, "metavar", "") or name.upper().replace("_", "-")
        read_as: dict[str, Any] = {"type": type or click.STRING, "default": default, "multiple": multiple}
        return click.Option([name, *names], help=help and help(), hidden=help is None, metavar=shown, **read_as)

    return field(default=() if multiple else default, metadata={PARAMETER: parameter})


def flag(*names: str, help: Text, default: bool | None = False) -> Any:
    """`--yes`, or, with both names in one, `--wait/--no-wait`."""

    def parameter(name: str) -> click.Parameter:
        return click.Option([name, *names], help=help(), is_flag=True, default=default)

    return field(default=default, metadata={PARAMETER: parameter})


REQUIRED = "required"


def argument(
    metavar: str, *, help: Text, type: click.ParamType[Any] | None = None, default: Any = REQUIRED, many: bool = False
) -> Any:
    """`many`: any number of them; at least one where there is no default."""
    required = default is REQUIRED
    shown = f"{metavar}..." if many else metavar

    def parameter(name: str) -> click.Parameter:
        read_as: dict[str, Any] = {"type": type or click.STRING, "nargs": -1 if many else 1, "required": required}
        if not required and not many:
            read_as["default"] = default
        return click.Argument([name], help=help(), metavar=shown if required else f"[{shown}]", **read_as)

    return field(default=() if many else None if required else default, metadata={PARAMETER: parameter})


@dataclass(frozen=True)
class CommandOptions:
    """What every command takes."""

    data_dir: Path | None = option(
        "--data-dir",
        metavar="DIR",
        type=PATH,
        help=Text(
            "where everything is kept (default: $DANLU_HOME, else ~/.danlu)",
            "存放一切数据的目录（默认：$DANLU_HOME，否则 ~/.danlu）",
        ),
    )


def _parameters(options: type[CommandOptions]) -> list[click.Parameter]:
    return [one.metadata[PARAMETER](one.name) for one in fields(options)]


def _help_option() -> click.Option:
    def show(context: click.Context, _: click.Parameter, wanted: bool) -> None:
        if wanted and not context.resilient_parsing:
            click.echo(context.get_help())
            context.exit()

    names = ["help_wanted", "-h", "--help"]
    return click.Option(names, is_flag=True, is_eager=True, expose_value=False, callback=show, help=HELP())


class Command(click.Command):
    def __init__(self, name: str, entry: Entry) -> None:
        self.about = entry.about
        self.module = importlib.import_module(entry.module)
        self.options: type[CommandOptions] = self.module.Options
        params = [*_parameters(self.options), _help_option()]
        super().__init__(name, params=params, add_help_option=False, short_help=entry.about())

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.allow_extra_args = True  # Click would refuse them in English
        with _named_errors(ctx):
            super().parse_args(ctx, args)
        if ctx.args and not ctx.resilient_parsing:
            raise ExtraWords(ctx.args, ctx)
        return ctx.args

    def get_help(self, ctx: click.Context) -> str:
        return helptext.of_command(ctx, self.about, getattr(self.module, "MORE", None))

    def invoke(self, ctx: click.Context) -> int:
        return int(self.module.run(self.options(**ctx.params)))


class CommandGroup(click.Group):
    """Commands below a word. What is typed before their name belongs to the default one, and to the one that is named
    if it knows it: `danlu images --data-dir DIR build torch`."""

    def __init__(self, name: str, entry: Entry) -> None:
        self.about = entry.about
        module = importlib.import_module(entry.module)
        self.table: Mapping[str, Entry] = module.COMMANDS
        self.default = Command(name, self.table[module.DEFAULT])
        super().__init__(
            name, params=self.default.params, invoke_without_command=True, add_help_option=False,
            short_help=entry.about(),
        )  # fmt: skip

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*self.table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.table.get(cmd_name)
        return load(cmd_name, entry) if entry is not None else None

    def get_help(self, ctx: click.Context) -> str:
        return helptext.of_group(ctx, self.about, {name: entry.about for name, entry in self.table.items()})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with _named_errors(ctx):
            return click.Command.parse_args(self, ctx, args)  # a group's own wants a command to be named

    def invoke(self, ctx: click.Context) -> int:
        if not ctx.args:
            return self.default.invoke(ctx)
        name, *rest = ctx.args
        command = self.get_command(ctx, name)
        if command is None:
            raise click.NoSuchCommand(name, possibilities=self.table, ctx=ctx)
        given = {one: value for one, value in ctx.params.items() if _typed(ctx, one)}
        with command.make_context(name, rest, parent=ctx, default_map=given) as inner:
            for unknown in given.keys() - inner.params.keys():
                raise click.NoSuchOption(f"--{unknown.replace('_', '-')}", ctx=inner)
            return int(command.invoke(inner))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = [
            CompletionItem(name, help=entry.about())
            for name, entry in self.table.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]


@contextmanager
def _named_errors(ctx: click.Context) -> Iterator[None]:
    """Click's parser leaves out of some which command they are about."""
    try:
        yield
    except click.UsageError as error:
        error.ctx = error.ctx or ctx
        raise


def _typed(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE


def load(name: str, entry: Entry) -> Command | CommandGroup:
    group = hasattr(importlib.import_module(entry.module), "COMMANDS")
    return (CommandGroup if group else Command)(name, entry)
