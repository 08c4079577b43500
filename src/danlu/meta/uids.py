"""Uids of objects: random UUIDs (version 4), as everywhere in Kubernetes.

Random bytes are taken from the kernel for many at a time: 16 cost as much as a thousand. They are
names and no secrets; what must not be guessed is not made here.
"""

from __future__ import annotations

import os

_AT_A_TIME = 64
_ready: list[bytes] = []
os.register_at_fork(after_in_child=_ready.clear)  # no two processes give out the same ones


def new_uid() -> str:
    if not _ready:
        pool = os.urandom(16 * _AT_A_TIME)
        _ready.extend(pool[start : start + 16] for start in range(0, len(pool), 16))
    digits = _ready.pop().hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
