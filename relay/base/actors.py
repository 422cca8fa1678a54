"""Who did something, in the form that answers have."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Actor

_KINDS: dict[str, Literal["guest", "org"]] = {"guest": "guest", "org": "org"}


def actor(id: str, handle: str | None, kind: str) -> Actor:
    """The account of a row: its id, its handle if it has one, and `kind`, the kind of the account."""
    return Actor(id=id, handle=handle, kind=_KINDS.get(kind, "user"))
