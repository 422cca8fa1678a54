"""A request before it is signed."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from localstore.core.identity.request_signature import SAFE_METHODS, ContentDigest


class Outgoing(msgspec.Struct):
    """A request before it is signed. `body` is bytes, or a function that is called for each attempt and
    returns `length` bytes in pieces. `alone` is True if only the device key signs the request and no token is
    sent. `may_have_arrived` says whether the server may have received an earlier attempt."""

    method: str
    target: str
    body: bytes | Callable[[], Iterable[bytes]] | None = None
    length: int = 0
    digest: ContentDigest | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    repeatable: bool = False
    upgrades: bool = False
    alone: bool = False
    may_have_arrived: bool = False

    @property
    def is_read(self) -> bool:
        """Whether the request only reads. Such a request is not signed, and its redirects within the origin
        are followed."""
        return self.method in SAFE_METHODS and not self.upgrades
