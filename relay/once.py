"""Idempotency-Key: a request that is repeated with its key gets the first answer and changes nothing.

Handlers take no part in this. The gate reads the key of every request that changes something for an account,
and replies with the stored answer if there is one. Otherwise `Caller.write` checks again under its lock. It
keeps its transaction open until the gate stores the answer in it, encrypted.

A key belongs to an account, is valid for 30 days and stands for one method, path, query and body. Refusals
are not stored: a refused request may be repeated. The database contains only a hash of the key, and the
answer encrypted with the key, because an answer may contain a new token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import msgspec
from nacl.exceptions import CryptoError
from nacl.secret import SecretBox

from localstore.core.encoding import b64u, digest, length_prefixed
from localstore.core.errors import Invalid, QuotaExceeded, Unavailable
from localstore.core.model import limits
from relay.base.clock import now_ms
from relay.db import idempotency as rows
from relay.db.engine.database import Look, Tx, UniqueViolation

_KEY = re.compile(r"[!-~]{1,255}")
_COUNTED = "ABCD"  # one name in sixteen begins so: the rows of an account are counted that often


class Request(Protocol):
    """The parts of an HTTP request that this module reads."""

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
class StoredAnswer:
    """The stored HTTP response to a request with an Idempotency-Key. If the request is repeated, it gets the
    same response. `media`: content type; `headers`: all headers except those of the connection."""

    status: int
    body: bytes
    media: str | None = "application/json"
    headers: Sequence[tuple[str, str]] = ()

    def pack(self) -> bytes:
        return msgspec.json.encode([self.media, self.headers]) + b"\n" + self.body

    @classmethod
    def unpack(cls, status: int, raw: bytes) -> StoredAnswer:
        if raw.startswith(b"{"):  # earlier versions kept the JSON alone
            return cls(status, raw)
        head, _, body = raw.partition(b"\n")
        media, headers = msgspec.json.decode(head, type=tuple[str | None, list[tuple[str, str]]])
        return cls(status, body, media, headers)


class AnsweredBefore(Exception):  # no error: the answer of this request
    """Raised inside the transaction if this request was carried out before. Contains the stored answer."""

    def __init__(self, answer: StoredAnswer) -> None:
        super().__init__()
        self.answer = answer


@dataclass(slots=True, frozen=True)
class Once:
    """The Idempotency-Key of a request. `key`: None if the client sent none; then no answer is stored.
    `request`: BLAKE3 of the method, path, query and body for which the key stands."""

    account_id: str = ""
    key: str | None = None
    request: bytes = b""

    @classmethod
    def of(cls, request: Request, body: bytes, account_id: str | None, key: str | None = None) -> Once:
        """The Idempotency-Key of this request. `key`: the value of a form's field, used instead of the
        header. Raises Invalid for a request without an account, to which a key must belong, and for a key
        that is not 1 to 255 printable ASCII characters."""
        key = key or request.headers.get("idempotency-key")
        if key is None:
            return NEVER_BEFORE
        if account_id is None:
            raise Invalid("an Idempotency-Key belongs to an account; send this request without one")
        if not _KEY.fullmatch(key):
            raise Invalid("Idempotency-Key is 1 to 255 printable ASCII characters without spaces")
        parts = (request.method, request.path, request.query_string)
        return cls(account_id, key, digest(length_prefixed(*(part.encode() for part in parts), body)))

    async def find(self, look: Look) -> StoredAnswer | None:
        """The stored answer to this request; None if there is none. `look`: reads a row from the database.
        Raises Invalid when the key was used for another request."""
        if self.key is None:
            return None
        row = await look(rows.ONE, account_id=self.account_id, key=self._name(), now=now_ms())
        if row is None:
            return None
        request, status, body = row
        if request != self.request:
            raise _key_reused()
        try:
            return StoredAnswer.unpack(status, self._box().decrypt(body))
        except CryptoError:
            raise Unavailable("the answer that was kept cannot be read; look whether it was done") from None

    async def keep(self, tx: Tx, answer: StoredAnswer) -> None:
        """Store the answer in the transaction with the effect of the request. Raises QuotaExceeded if the
        account has stored too many answers."""
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
                status=answer.status,
                body=self._box().encrypt(answer.pack()),
                expires_at=now + limits.IDEMPOTENCY_KEY * 1000,
            )
        except UniqueViolation:  # about something else: requests about one thing take turns
            raise _key_reused() from None

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
        """The hash of the Idempotency-Key, under which its answer is stored."""
        return b64u(self._derive(b"svc-idempotency-name-v1"))

    def _box(self) -> SecretBox:
        return SecretBox(self._derive(b"svc-idempotency-answer-v1"))

    def _derive(self, use: bytes) -> bytes:
        return digest(length_prefixed(use, self.account_id.encode(), (self.key or "").encode()))


NEVER_BEFORE = Once()
"""Of a request without a key."""


def _key_reused() -> Invalid:
    return Invalid("this Idempotency-Key was used for another request; use a new one")
