"""`WebApp`: the page that each object of a kind serves, as the console opens it (`PlatformKind.app`).

Its condition says whether it can be opened; of the reasons why not, two are words that the console knows: `PAUSED`,
and those in `STARTING`. With any other the reason and its message are shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from danlu.meta.kind import Kind, Object

PAUSED = "Suspended"
CREATING, STARTED = "Creating", "Starting"
STARTING = (CREATING, STARTED)


@dataclass(frozen=True, slots=True)
class AppPlace:
    """Where the app of one object answers: a Service of its namespace, and one of that one's ports."""

    service: str
    port: int
    page: str = ""  # after the app's path: where a person begins
    # A Secret of its namespace, whose `token` is shown to the app as Jupyter wants it. Who may not read it does not get
    # in. "": whoever may read the object and the Service may open it.
    token_secret: str = ""


@dataclass(frozen=True, slots=True)
class WebApp:
    locate: Callable[[Object], AppPlace]  # pure; also of an object that is not ready
    ready: str = "Ready"  # the condition that is true when it can be opened
    # The program answers below `app_path`, which it is told; else it answers at `/`, and the path is taken off.
    knows_path: bool = False
    through_api: bool = True  # False: its pages do not pass an API server's proxy


def app_path(kind: Kind, namespace: str, name: str) -> str:
    """Of an object's app, below the apps' origin; with a slash at both ends.

    A program that is told its path once keeps it, on both targets and whatever stands before it.
    """
    return f"/t9k/{kind.plural}/projects/{namespace}/name/{name}/"
