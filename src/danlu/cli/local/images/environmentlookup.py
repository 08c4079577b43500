"""What the commands about images share: errors of the catalogue, and an environment by its name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from danlu.cli.failures import CommandError
from danlu.cli.language import Text, translated
from danlu.embedded.node.imagesource import ImageError
from danlu.environments.catalogue import Catalogue, Environment

MACHINE_TOOLS = Text("the tools of this machine", "本机的工具")
NO_ENVIRONMENT = Text("there is no environment {name!r}; there are {known}", "没有环境 {name!r}；有 {known}")


def image_errors(run: Callable[[Any], int]) -> Callable[[Any], int]:
    @wraps(run)
    def checked(options: Any) -> int:
        try:
            return run(options)
        except ImageError as error:
            raise CommandError(translated(error)) from error

    return checked


def environment_called(catalogue: Catalogue, name: str) -> Environment:
    environments = catalogue.environments()
    if name not in environments:
        raise CommandError(NO_ENVIRONMENT(name=name, known=", ".join(sorted(environments))))
    return environments[name]
