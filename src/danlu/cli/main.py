"""`danlu`: reads the command line and hands over to one file per command.

Commands are imported when they are chosen, so that `danlu status` does not wait for what only `danlu up` needs.

Exit codes: 0 done, 1 it could not be done (one line on stderr says why), 2 the command line is wrong, 3 `danlu status`
found nothing running, 130 Ctrl-C.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

# name -> (module, one line of help)
COMMANDS = {
    "up": ("danlu.cli.up", "start a Kubernetes in one process on this machine"),
    "down": ("danlu.cli.down", "stop it and the pods it runs; objects and volumes stay"),
    "status": ("danlu.cli.status", "say whether it runs, where, and how pods are run here"),
    "backup": ("danlu.cli.backup", "write everything that is stored to one file, while it runs or not"),
    "restore": ("danlu.cli.restore", "put a backup back in place"),
    "repair": ("danlu.cli.repair", "show what was found damaged, and mend it"),
    "encryption": ("danlu.cli.encryption", "tell of the key that secrets are encrypted with, or change it"),
    "kubeconfig": ("danlu.cli.kubeconfig", "print the path of its kubeconfig, or merge it into your own"),
    "images": ("danlu.cli.images", "list the image catalogue, or build one of its environments"),
    "data": ("danlu.cli.data", "fetch the data sets of the examples"),
    "console": ("danlu.cli.console", "serve the web console of a Kubernetes cluster"),
    "operator": ("danlu.cli.operator", "look after Danlu's kinds on a Kubernetes cluster"),
    "install": ("danlu.cli.install", "put Danlu on a Kubernetes cluster, or bring it up to date there"),
    "uninstall": ("danlu.cli.uninstall", "take Danlu from a cluster; what users made is kept"),
    "version": ("danlu.cli.version", "print the version"),
}
SHOW_TRACEBACK = "DANLU_TRACEBACK"  # set: an unexpected error shows where it happened


class CommandError(Exception):
    """Something the user can mend; the message is one clear line."""

    exit_code = 1


class UsageError(CommandError):
    """The command line asks for something that cannot be."""

    exit_code = 2


class _Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=min(_columns(), 100))


class Parser(argparse.ArgumentParser):
    def __init__(self, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, formatter_class=_Formatter, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        self.exit(UsageError.exit_code, f"danlu: {message}; `{self.prog} --help` tells more\n")


def _columns() -> int:
    import shutil

    return shutil.get_terminal_size((100, 24)).columns


def overview() -> str:
    width = max(map(len, COMMANDS)) + 3
    lines = [
        "Danlu 丹炉: build and train AI models with Kubernetes' own YAML, on this machine or on a cluster.",
        "",
        "usage: danlu COMMAND [OPTIONS]",
        "",
        *(f"  {name:<{width}}{text}" for name, (_, text) in COMMANDS.items()),
        "",
        "`danlu COMMAND --help` tells more about one command.",
    ]
    return "\n".join(lines)


def command_parser(name: str) -> Parser:
    module, text = COMMANDS[name]
    command = Parser(f"danlu {name}", text[0].upper() + text[1:] + ".")
    command.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where everything is kept (default: $DANLU_HOME, else ~/.danlu)"
    )
    importlib.import_module(module).arguments(command)
    return command


def main(argv: list[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _run(words)
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


def _unexpected(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    place = f"set {SHOW_TRACEBACK}=1 to see where"
    return f"a mistake in Danlu: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''} ({place})"


def _run(words: list[str]) -> int:
    if not words:
        print(overview())
        return UsageError.exit_code
    name, rest = words[0], words[1:]
    if name in ("-h", "--help", "help"):
        print(overview())
        return 0
    if name == "--version":
        name = "version"
    if name not in COMMANDS:
        raise UsageError(f"there is no command {name!r}; `danlu --help` lists them")
    arguments = command_parser(name).parse_intermixed_args(rest)
    return int(importlib.import_module(COMMANDS[name][0]).run(arguments))
