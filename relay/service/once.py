"""Idempotency-Key: a creating request that is sent again gets its first answer, and creates nothing.

    async def create_ref(view: View, body: RefCreate, once: Once) -> Ref:      # the gate fills `once`
    ...
    async with caller.write() as tx:                  # in the service, the effect's own transaction
        if (made := await once.answer(tx, caller.me, Repo)) is not None:
            return made
        ...
        await once.remember(tx, caller.me, made)

Keys belong to an account, live for 24 hours and stand for one method, path and body. The database holds
neither a key nor, in the clear, an answer, which may be a new token: the key that was sent opens it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol, TypeVar

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from localstore.core import limits
from localstore.core.encoding import b64u, digest, length_prefixed
from localstore.core.errors import Invalid, Unavailable
from relay.base.clock import now_ms
from relay.caller import Principal
from relay.db import idempotency as rows
from relay.db.engine.database import Tx, UniqueViolation

_KEY = re.compile(r"[!-~]{1,255}")
T = TypeVar("T", bound=msgspec.Struct)


class Request(Protocol):
    """What is read of an HTTP request."""

    method: str

    @property
    def path(self) -> str: ...
    @property
    def headers(self) -> _Headers: ...


class _Headers(Protocol):
    def get(self, name: str, /) -> str | None: ...


@dataclass(slots=True, frozen=True)
class Once:
    """`key` None: the client sent none, so nothing is remembered. `request`: BLAKE3 of what it stands for."""

    key: str | None = None
    request: bytes = b""

    @classmethod
    def of(cls, request: Request, body: msgspec.Struct | None) -> Once:
        """Invalid for a key that is not 1 to 255 printable ASCII characters."""
        key = request.headers.get("idempotency-key")
        if key is None:
            return cls()
        if not _KEY.fullmatch(key):
            raise Invalid("Idempotency-Key is 1 to 255 printable ASCII characters without spaces")
        parts = (request.method.encode(), request.path.encode(), msgspec.json.encode(body))
        return cls(key, digest(length_prefixed(*parts)))

    async def answer(self, tx: Tx, me: Principal, shape: type[T]) -> T | None:
        """The answer that was given before. Invalid when the key was used for another request."""
        if self.key is None:
            return None
        row = await tx.one(rows.ONE, account_id=me.account_id, key=self._name(me), now=now_ms())
        if row is None:
            return None
        request, body = row
        if request != self.request:
            raise _used()
        try:
            return msgspec.json.decode(self._box(me).decrypt(body), type=shape)
        except CryptoError:
            raise Unavailable("the answer that was kept cannot be read; look whether it was done") from None

    async def remember(self, tx: Tx, me: Principal, answer: msgspec.Struct, status: int = 201) -> None:
        """Keep the answer for 24 hours. Only what was done is kept: a refused request may be sent again."""
        if self.key is None:
            return
        await tx.run(rows.DROP, account_id=me.account_id, key=self._name(me))  # an expired one, or none
        try:
            await tx.run(
                rows.INSERT,
                account_id=me.account_id,
                key=self._name(me),
                request=self.request,
                status=status,
                body=self._box(me).encrypt(msgspec.json.encode(answer)),
                expires_at=now_ms() + limits.IDEMPOTENCY_KEY * 1000,
            )
        except UniqueViolation:  # about something else: requests about one thing take turns
            raise _used() from None

    def _name(self, me: Principal) -> str:
        """What the key is kept as."""
        return b64u(self._derived(b"svc-idempotency-name-v1", me))

    def _box(self, me: Principal) -> SecretBox:
        return SecretBox(self._derived(b"svc-idempotency-answer-v1", me))

    def _derived(self, use: bytes, me: Principal) -> bytes:
        return digest(length_prefixed(use, me.account_id.encode(), (self.key or "").encode()))


NEVER_BEFORE = Once()
"""For a caller that sends no key, such as a form."""


def _used() -> Invalid:
    return Invalid("this Idempotency-Key was used for another request; use a new one")
