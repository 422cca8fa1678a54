"""Makes the part of an answer that names an account."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Actor

_KINDS: dict[str, Literal["guest", "org"]] = {"guest": "guest", "org": "org"}


def to_actor(id: str, handle: str | None, kind: str) -> Actor:
    """Make the Actor that names an account in answers. `handle`: None for an account without one. `kind`:
    "guest" and "org" are kept; every other kind becomes "user"."""
    return Actor(id=id, handle=handle, kind=_KINDS.get(kind, "user"))
