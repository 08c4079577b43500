"""What is wrong with a command line, in words: Click says it by the type of its exceptions and in English alone."""

from __future__ import annotations

import click

from danlu.cli.language import Text

MORE = Text("{problem}; `{command} --help` tells more", "{problem}；详见 `{command} --help`")
NO_OPTION = Text("there is no option {name}", "没有 {name} 这个选项")
NO_COMMAND = Text("there is no command {name!r}", "没有 {name!r} 这个命令")
MEANT = Text("{problem}, perhaps {similar}", "{problem}，您指的可能是 {similar}")
NEEDS_VALUE = Text("{name} needs a value", "{name} 需要一个值")
TAKES_NONE = Text("{name} takes no value", "{name} 不接受值")
MISSING = Text("{name} is missing", "缺少 {name}")
TOO_MANY = Text("unexpected: {words}", "多余的参数：{words}")


class ExtraWords(click.UsageError):
    def __init__(self, words: list[str], ctx: click.Context) -> None:
        super().__init__("", ctx)
        self.words = words


def told(error: click.UsageError) -> str:
    ctx = error.ctx
    problem = _problem(error)
    return MORE(problem=problem, command=ctx.command_path if ctx else "danlu")


def _problem(error: click.UsageError) -> str:
    match error:
        case click.NoSuchOption():
            return _with_similar(NO_OPTION(name=error.option_name), error.possibilities)
        case click.NoSuchCommand():
            return _with_similar(NO_COMMAND(name=error.command_name), error.possibilities)
        case click.BadOptionUsage():
            return (TAKES_NONE if _is_flag(error) else NEEDS_VALUE)(name=error.option_name)
        case click.MissingParameter():
            return MISSING(name=_named(error))
        case click.BadParameter():
            return f"{_named(error)}: {error.message}"
        case ExtraWords():
            return TOO_MANY(words=" ".join(error.words))
    return error.message


def _with_similar(problem: str, similar: list[str] | None) -> str:
    return MEANT(problem=problem, similar=", ".join(similar)) if similar else problem


def _is_flag(error: click.BadOptionUsage) -> bool:
    known = error.ctx.command.params if error.ctx else []
    return any(isinstance(one, click.Option) and one.is_flag and error.option_name in one.opts for one in known)


def _named(error: click.BadParameter) -> str:
    match error.param:
        case click.Option():
            return max(error.param.opts, key=len)
        case click.Argument():
            return error.param.human_readable_name.strip("[].")
    return str(error.param_hint or "")
