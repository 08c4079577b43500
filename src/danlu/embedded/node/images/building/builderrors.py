"""What ends a build: with the line of the Dockerfile that it is about."""

from __future__ import annotations

from danlu.diagnose import say
from danlu.embedded.node.imagesource import ImageError


class BuildError(ImageError):
    """A line of the Dockerfile cannot be carried out."""


def wrong_line(line: int, problem: object) -> BuildError:
    return BuildError(say("DL-BUILD-LINE", line=str(line), problem=str(problem)))
