"""Short hashes for names of children: stable across restarts, in the alphabet that Kubernetes makes names of."""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

# No vowels and nothing that looks like another character.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def short_hash(content: Any, collisions: int | None = None) -> str:
    """Kubernetes hashes its own in-memory form, which nobody else has; only shape and stability matter."""
    encoded = orjson.dumps([content, collisions or None], option=orjson.OPT_SORT_KEYS)
    number = int.from_bytes(hashlib.sha256(encoded).digest()[:4])
    return "".join(ALPHABET[ord(digit) % len(ALPHABET)] for digit in str(number))
