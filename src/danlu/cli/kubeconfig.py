"""`danlu kubeconfig`: the path of the kubeconfig; `--merge` adds its context to the user's own file."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from danlu.cli.main import CommandError
from danlu.cli.place import data_directory
from danlu.embedded.apiserver.auth.kubeconfig import KubeconfigError, merge
from danlu.meta import manifests


def arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--merge",
        action="store_true",
        help="add the context `danlu` to your own kubeconfig ($KUBECONFIG or ~/.kube/config)",
    )
    command.add_argument("--into", type=Path, metavar="FILE", help="with --merge: the file to add it to")
    command.add_argument("--keep-context", action="store_true", help="with --merge: leave the current context as it is")


def run(arguments: argparse.Namespace) -> int:
    ours = data_directory(arguments).kubeconfig
    if not ours.exists():
        raise CommandError(f"there is no {ours} yet; `danlu up` makes it")
    if not arguments.merge:
        print(ours)
        return 0
    target = arguments.into or _own_file(ours)
    try:
        merge(target, manifests.load(ours.read_bytes())[0], use=not arguments.keep_context)
    except KubeconfigError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{target} was left as it is: {error.strerror or error}") from error
    print(f"{target} now has the context `danlu`" + ("" if arguments.keep_context else ", and it is the current one"))
    return 0


def _own_file(ours: Path) -> Path:
    """The first file of $KUBECONFIG that is not Danlu's own, as kubectl would write to; else ~/.kube/config."""
    for text in os.environ.get("KUBECONFIG", "").split(os.pathsep):
        if text and Path(text).expanduser().absolute() != ours:
            return Path(text).expanduser()
    return Path("~/.kube/config").expanduser()
