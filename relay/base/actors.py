"""Names, in answers of the relay, the account that did something."""

from __future__ import annotations

from typing import Literal

from localstore.core.model.base import Actor

_KINDS: dict[str, Literal["guest", "org"]] = {"guest": "guest", "org": "org"}


def to_actor(id: str, handle: str | None, kind: str) -> Actor:
    """The account as answers name it: id, handle if it has one, and kind ("user" for any kind but guest and
    org)."""
    return Actor(id=id, handle=handle, kind=_KINDS.get(kind, "user"))
