"""Short ids of seals, as a person types them."""

from __future__ import annotations

from collections.abc import Iterable

SHORTEST = 4  # characters of an id that name a seal, if no other one begins with them


def shortest_id(seal: str, seals: Iterable[str]) -> str:
    """Returns the fewest characters, at least four, that name `seal` and no other one of `seals`."""
    others = [other for other in seals if other != seal]
    length = SHORTEST
    while any(other.startswith(seal[:length]) for other in others):
        length += 1
    return seal[:length]
