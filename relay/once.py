"""Idempotency-Key: a request that is sent again with its key gets its first answer, and changes nothing.

No handler takes part. The gate reads the key of every request that changes something for an account, and
answers from here what it answered before. Else `Caller.write` looks again under its lock and leaves its
transaction open, until the gate has the answer and keeps it in the same transaction, sealed.

Keys belong to an account, live for 30 days and stand for one method, path, query and body. Only what was done
is kept: a refused request may be sent again. The database holds neither a key nor, in the clear, an answer,
which may be a new token: the key that was sent opens it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from localstore.core import limits
from localstore.core.encoding import b64u, digest, length_prefixed
from localstore.core.errors import Invalid, QuotaExceeded, Unavailable
from relay.base.clock import now_ms
from relay.db import idempotency as rows
from relay.db.engine.database import Look, Tx, UniqueViolation

_KEY = re.compile(r"[!-~]{1,255}")
_COUNTED = "ABCD"  # one name in sixteen begins so: the rows of an account are counted that often


class Request(Protocol):
    """What is read of an HTTP request."""

    method: str

    @property
    def path(self) -> str: ...
    @property
    def query_string(self) -> str: ...
    @property
    def headers(self) -> _Headers: ...


class _Headers(Protocol):
    def get(self, name: str, /) -> str | None: ...


@dataclass(slots=True, frozen=True)
class Said:
    """An answer as it went over the wire. `headers`: all but those that tell of the connection."""

    status: int
    body: bytes
    media: str | None = "application/json"
    headers: Sequence[tuple[str, str]] = ()

    def pack(self) -> bytes:
        return msgspec.json.encode([self.media, self.headers]) + b"\n" + self.body

    @classmethod
    def unpack(cls, status: int, raw: bytes) -> Said:
        if raw.startswith(b"{"):  # earlier versions kept the JSON alone
            return cls(status, raw)
        head, _, body = raw.partition(b"\n")
        media, headers = msgspec.json.decode(head, type=tuple[str | None, list[tuple[str, str]]])
        return cls(status, body, media, headers)


class SaidBefore(Exception):  # no error: the answer of this request
    """This request was carried out before; raised out of the transaction in which it would be again."""

    def __init__(self, said: Said) -> None:
        super().__init__()
        self.said = said


@dataclass(slots=True, frozen=True)
class Once:
    """`key` None: the client sent none, so nothing is remembered. `request`: BLAKE3 of what it stands for."""

    account_id: str = ""
    key: str | None = None
    request: bytes = b""

    @classmethod
    def of(cls, request: Request, body: bytes, account_id: str | None) -> Once:
        """Invalid for a key that is not 1 to 255 printable ASCII characters, or from nobody: it would be
        ignored, and belongs to an account."""
        key = request.headers.get("idempotency-key")
        if key is None:
            return NEVER_BEFORE
        if account_id is None:
            raise Invalid("an Idempotency-Key belongs to an account; send this request without one")
        if not _KEY.fullmatch(key):
            raise Invalid("Idempotency-Key is 1 to 255 printable ASCII characters without spaces")
        parts = (request.method, request.path, request.query_string)
        return cls(account_id, key, digest(length_prefixed(*(part.encode() for part in parts), body)))

    async def find(self, look: Look) -> Said | None:
        """The answer that was given before. Invalid when the key was used for another request."""
        if self.key is None:
            return None
        row = await look(rows.ONE, account_id=self.account_id, key=self._name(), now=now_ms())
        if row is None:
            return None
        request, status, body = row
        if request != self.request:
            raise _used()
        try:
            return Said.unpack(status, self._box().decrypt(body))
        except CryptoError:
            raise Unavailable("the answer that was kept cannot be read; look whether it was done") from None

    async def keep(self, tx: Tx, said: Said) -> None:
        """Keep the answer, in the transaction of what it tells of. QuotaExceeded for an account that keeps
        too many."""
        if self.key is None:
            return
        name, now = self._name(), now_ms()
        if name[0] in _COUNTED:
            await self._require_room(tx)
        await tx.run(rows.DROP, account_id=self.account_id, key=name)  # an expired one, or none
        try:
            await tx.run(
                rows.INSERT,
                account_id=self.account_id,
                key=name,
                request=self.request,
                status=said.status,
                body=self._box().encrypt(said.pack()),
                expires_at=now + limits.IDEMPOTENCY_KEY * 1000,
            )
        except UniqueViolation:  # about something else: requests about one thing take turns
            raise _used() from None

    async def _require_room(self, tx: Tx) -> None:
        if await tx.one(rows.NTH, account_id=self.account_id, skip=limits.IDEMPOTENCY_KEYS - 1):
            raise QuotaExceeded(
                f"this account sent {limits.IDEMPOTENCY_KEYS} requests with an Idempotency-Key in 30 days; "
                "send this one without",
                "idempotency_keys",
                limits.IDEMPOTENCY_KEYS,
                limits.IDEMPOTENCY_KEYS,
            )

    def _name(self) -> str:
        """What the key is kept as."""
        return b64u(self._derived(b"svc-idempotency-name-v1"))

    def _box(self) -> SecretBox:
        return SecretBox(self._derived(b"svc-idempotency-answer-v1"))

    def _derived(self, use: bytes) -> bytes:
        return digest(length_prefixed(use, self.account_id.encode(), (self.key or "").encode()))


NEVER_BEFORE = Once()
"""Of a request without a key."""


def _used() -> Invalid:
    return Invalid("this Idempotency-Key was used for another request; use a new one")
