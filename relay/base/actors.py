"""Accounts as actors in answers: who did something."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Actor

_KINDS: dict[str, Literal["guest", "org"]] = {"guest": "guest", "org": "org"}


def actor(id: str, handle: str | None, kind: str) -> Actor:
    """The account of a row for answers: id, handle if it has one, and kind."""
    return Actor(id=id, handle=handle, kind=_KINDS.get(kind, "user"))
