"""`danlu` with mends taken out again, to prove that the fuzzer would find what they mend.

    python -m tests.attack.fuzz.mutants NAME,NAME… up …

Each mutant puts one vulnerable behaviour back into this process, and says so when there is nothing to put it back into:
a mutant that no longer fits the code would make the proof worthless.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

MUTANTS: dict[str, Callable[[], None]] = {}


def mutant(name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(put_back: Callable[[], None]) -> Callable[[], None]:
        MUTANTS[name] = put_back
        return put_back

    return register


def main() -> None:
    names, *words = sys.argv[1:]
    for name in filter(None, names.split(",")):
        MUTANTS[name]()
    sys.argv[1:] = words
    from danlu.cli.main import main as danlu

    danlu(words)


if __name__ == "__main__":
    main()
