"""`danlu completion SHELL`, and what a shell is answered when somebody presses Tab."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

import click
from click import shell_completion

from danlu.cli import commands
from danlu.cli.command import CommandOptions, argument, load
from danlu.cli.language import Text
from danlu.cli.valuetypes import Choice

PROGRAM, VARIABLE = "danlu", "_DANLU_COMPLETE"  # as Click's scripts for the shells spell it
SHELLS = ("bash", "zsh", "fish")
MORE = Text(
    'Bash: eval "$(danlu completion bash)", in ~/.bashrc to have it always; zsh alike; '
    "fish: danlu completion fish | source.",
    'Bash：eval "$(danlu completion bash)"，写入 ~/.bashrc 则长期有效；zsh 相同；'
    "fish：danlu completion fish | source。",
)


@dataclass(frozen=True)
class Options(CommandOptions):
    shell: str = argument("|".join(SHELLS), type=Choice(SHELLS), help=Text("the shell", "所用的 shell"))


class _Root(click.Group):
    """All commands as one, which only completion needs; each is imported when it is typed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*commands.COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return load(cmd_name, commands.COMMANDS[cmd_name]) if cmd_name in commands.COMMANDS else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[shell_completion.CompletionItem]:
        return [
            shell_completion.CompletionItem(name, help=entry.about())
            for name, entry in commands.COMMANDS.items()
            if name.startswith(incomplete)
        ]


def run(options: Options) -> int:
    return _told(f"{options.shell}_source")


def answered() -> bool:
    """Whether it was the shell that asked, not a person."""
    instruction = os.environ.get(VARIABLE)
    if instruction:
        _told(instruction)
    return bool(instruction)


def _told(instruction: str) -> int:
    failed = shell_completion.shell_complete(_Root(PROGRAM), {}, PROGRAM, VARIABLE, instruction)
    sys.stdout.flush()
    return failed
