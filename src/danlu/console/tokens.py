"""What can be read off a bearer token without its key."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import Any

from danlu.meta.nesting import parse_json


def claims(token: str) -> dict[str, Any]:
    """Of a JSON web token; empty for any other. Nothing here is verified: whoever trusts it must ask the issuer."""
    parts = token.split(".")
    if len(parts) != 3:
        return {}
    try:
        found = parse_json(urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def ends_at(token: str) -> int | None:
    """Seconds since 1970; None when the token does not say."""
    ends = claims(token).get("exp")
    return int(ends) if isinstance(ends, int | float) else None
