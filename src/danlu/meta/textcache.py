"""A cache of what was made of texts, for short texts only.

Most are seen again and again (names, quantities, selectors), and reading them costs more than looking them up. But
users choose them, and thousands of texts of a megabyte each would be held for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

LONGEST = 1024  # characters

Made = TypeVar("Made")


def cached(most: int, longest: int = LONGEST) -> Callable[[Callable[[Any], Made]], Callable[[Any], Made]]:
    """For a function of one text (or number): keeps the `most` last results."""

    def decorate(make: Callable[[Any], Made]) -> Callable[[Any], Made]:
        kept = lru_cache(maxsize=most)(make)

        @wraps(make)
        def look_up(text: Any) -> Made:
            return make(text) if text.__class__ is str and len(text) > longest else kept(text)

        return look_up

    return decorate
