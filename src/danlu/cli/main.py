"""`danlu`: reads the command line and hands over to one file per command.

Commands are imported when they are chosen, so that `danlu status` does not wait for what only `danlu up` needs.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path
from typing import NoReturn

from danlu import __version__

# name -> (module, one line of help)
COMMANDS = {
    "up": ("danlu.cli.up", "start a Kubernetes in one process on this machine"),
    "down": ("danlu.cli.down", "stop it, and the pods it runs"),
    "status": ("danlu.cli.status", "say whether it runs, where, and how pods are run"),
    "kubeconfig": ("danlu.cli.kubeconfig", "print the path of its kubeconfig, or merge it into your own"),
    "images": ("danlu.cli.images", "list the image catalogue, or build one of its environments"),
    "data": ("danlu.cli.data", "fetch the data sets of the examples"),
    "version": ("danlu.cli.version", "print the version"),
}


class CommandError(Exception):
    """Something the user can mend; the message is one clear line."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"danlu: {message}\nTry `{self.prog} --help`.\n")


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="danlu",
        description="Danlu 丹炉: build and train AI models with Kubernetes' own YAML, on this machine or on a cluster.",
        epilog="`danlu COMMAND --help` tells more about one command.",
    )
    top.add_argument("--version", action="version", version=f"danlu {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", parser_class=Parser, required=True)
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", add_help=False)
    return top


def command_parser(name: str) -> argparse.ArgumentParser:
    module, text = COMMANDS[name]
    command = Parser(prog=f"danlu {name}", description=text[0].upper() + text[1:] + ".")
    command.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="where everything is kept (default: $DANLU_HOME or ~/.danlu)"
    )
    importlib.import_module(module).arguments(command)
    return command


def main(argv: list[str] | None = None) -> None:
    words = sys.argv[1:] if argv is None else argv
    chosen, rest = parser().parse_known_args(words[:1])[0], words[1:]
    arguments = command_parser(chosen.command).parse_intermixed_args(rest)
    module = importlib.import_module(COMMANDS[chosen.command][0])
    try:
        sys.exit(module.run(arguments))
    except CommandError as error:
        print(f"danlu: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(141)
