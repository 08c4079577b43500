"""`danlu` with mends taken out again, to prove that the fuzzer would find what they mend.

    python -m tests.attack.fuzz.mutants NAME,NAME… up …

Each mutant puts one vulnerable behaviour back into this process. One that no longer fits the code changes nothing, and
then `test_rediscovery.py` fails, because nothing is found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(put_back: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[name] = put_back
        return put_back

    return register


@mutant("namespaces-under-a-namespace")
def _finding_2() -> None:
    """Kinds without a namespace answer below any namespace, with the rights of that one."""
    from danlu.embedded.apiserver.target import Target

    before = Target.fits
    Target.fits = lambda self, namespaced: before(self, namespaced) if namespaced else True  # type: ignore[method-assign]


@mutant("tokens-of-others")
def _finding_3() -> None:
    """Continue tokens are of nobody: no seal, and what is kept for one list goes to whoever names its revision."""
    from danlu.embedded.apiserver import pagination

    kept: dict[tuple[str, int], Any] = {}
    pagination.ContinueTokens._mac = lambda self, asked, revision, place: b""  # type: ignore[method-assign]
    pagination.Snapshots.keep = lambda self, asked, revision, found: kept.update({(asked.resource, revision): found})  # type: ignore[method-assign]
    pagination.Snapshots.find = lambda self, asked, revision: kept.get((asked.resource, revision))  # type: ignore[method-assign]


@mutant("deep-yaml")
def _finding_4() -> None:
    """YAML goes to libyaml, which calls itself for each level, however many there are."""
    from danlu.meta import yamlreader

    yamlreader._survey = lambda body: None


@mutant("variables-that-double")
def _finding_7_variables() -> None:
    """Environment variables are expanded however large they get."""
    from danlu.embedded.node.pods import environment

    environment.LONGEST_STRING = environment.LARGEST_ENVIRONMENT = 1 << 60


@mutant("replicas-without-end")
def _finding_7_replicas() -> None:
    """A stateful set's controller makes a list of all its ordinals, whether there are pods or not."""
    from danlu.embedded.controllers.statefulset import identity

    before = identity.ordinals
    identity.ordinals = lambda stateful_set: list(before(stateful_set))  # type: ignore[assignment,return-value]


def main() -> None:
    names, *words = sys.argv[1:]
    for name in filter(None, names.split(",")):
        MUTANTS[name]()
    sys.argv[1:] = words
    from danlu.cli.main import main as danlu

    danlu(words)


if __name__ == "__main__":
    main()
