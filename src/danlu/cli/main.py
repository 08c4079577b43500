"""`danlu`: reads the command line and hands over to one file per command.

Exit codes: 0 done, 1 it could not be done (one line on stderr says why), 2 the command line is wrong, 3 `danlu status`
found nothing running, 130 Ctrl-C.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator

from danlu.cli import layout
from danlu.cli.commands import COMMANDS, SECTIONS
from danlu.cli.failures import CommandError, UsageError
from danlu.cli.language import Text

SHOW_TRACEBACK = "DANLU_TRACEBACK"  # set: an unexpected error shows where it happened

ABOUT = Text(
    "Danlu 丹炉: build and train AI models with Kubernetes' own YAML, on this machine or on a cluster.",
    "Danlu 丹炉：用 Kubernetes 自己的 YAML，在本机或集群上构建和训练 AI 模型。",
)
USAGE = Text("usage: danlu COMMAND [OPTIONS]", "用法：danlu 命令 [选项]")
TELLS_MORE = Text(
    "`danlu COMMAND --help` tells more about one command.", "`danlu 命令 --help` 给出某个命令的详细说明。"
)
NO_COMMAND = Text(
    "there is no command {name!r}; `danlu --help` lists them", "没有 {name!r} 这个命令；`danlu --help` 列出全部"
)
MISTAKE = Text(
    "a mistake in Danlu: {error} (set {variable}=1 to see where)",
    "丹炉的程序错误：{error}（设置 {variable}=1 可看到出错位置）",
)


def overview() -> Iterator[str]:
    most = min(layout.columns(), layout.WIDEST)
    yield from layout.wrapped(ABOUT(), most)
    yield ""
    yield USAGE()
    left = max(map(len, COMMANDS)) + 5
    for section in SECTIONS:
        yield ""
        yield section.title()
        rows = [(name, entry.about()) for name, entry in section.commands.items()]
        yield from layout.definitions(rows, most, left=left)
    yield ""
    yield TELLS_MORE()


def main(argv: list[str] | None = None) -> None:
    _set_up_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()  # here, where a reader that went away is expected
        sys.exit(code)
    except CommandError as error:
        print(f"danlu: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody reads; the interpreter must not complain at its end
        sys.exit(141)
    except Exception as error:
        if os.environ.get(SHOW_TRACEBACK):
            traceback.print_exc()
        print(f"danlu: {_unexpected(error)}", file=sys.stderr)
        sys.exit(1)


def _set_up_streams() -> None:
    """A terminal that knows no Chinese shows ? in place of it: better than nothing at all."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return MISTAKE(error=said, variable=SHOW_TRACEBACK)


def _run(words: list[str]) -> int:
    if "_DANLU_COMPLETE" in os.environ:  # a shell asks; importing Click for it costs nobody else anything
        from danlu.cli import shellcompletion

        if shellcompletion.answered():
            return 0
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    if not words or words[0] in ("-h", "--help"):
        print("\n".join(overview()))
        return 0 if words else UsageError.exit_code
    name = "version" if words[0] == "--version" else words[0]
    if name not in COMMANDS:
        raise UsageError(NO_COMMAND(name=name))
    return _command(name, words[1:])


def _command(name: str, words: list[str]) -> int:
    import click

    from danlu.cli import usageerrors
    from danlu.cli.command import load

    command = load(name, COMMANDS[name])
    try:
        with command.make_context(f"danlu {name}", words) as context:
            return command.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.UsageError as error:
        raise UsageError(usageerrors.told(error)) from error
