"""What the node keeps in memory for authentication: verified tokens and the password hasher."""

from __future__ import annotations

import asyncio
import hashlib
import time
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from localstore.core.errors import Unauthorized
from localstore.core.identity import bearer
from localstore.core.identity.capability import Guard, Token
from localstore.core.identity.keys import key_id
from relay.base.threads import run_on_thread

_VERDICTS = 10_000
_ROOT_KEYS_AGE = 30.0  # seconds; a bad token makes nobody ask the signer more often
_HASHERS_AT_ONCE = 2  # 64 MiB each

RootKeys = Callable[[], Awaitable[dict[int, bytes]]]


@dataclass(slots=True, frozen=True)
class Verdict:
    """A verified token, with its content in the form that the database uses. `ends`: when it expires, in
    milliseconds."""

    token: Token
    session_id: str
    account_id: str
    device_key_id: str | None
    ends: int

    @classmethod
    def on(cls, token: Token) -> Verdict:
        capability = token.capability
        return cls(
            token=token,
            session_id=capability.session.hex(),
            account_id=str(uuid.UUID(bytes=capability.user)),
            device_key_id=None if capability.bound_key is None else key_id(capability.bound_key),
            ends=int(capability.expires.timestamp()) * 1000,
        )


class Tokens:
    """Cache of verified tokens by the digest of their text. Its size is limited; the least recently used
    tokens are dropped."""

    def __init__(self, size: int = _VERDICTS) -> None:
        self._size = size
        self._verdicts: OrderedDict[bytes, Verdict] = OrderedDict()
        self._guard: Guard | None = None
        self._root_keys: dict[int, bytes] = {}
        self._loaded = 0.0

    async def inspect(self, text: str, root_keys: RootKeys) -> Verdict:
        """Verify the token `text`, and return its content. Raises Unauthorized for an invalid token.
        `root_keys`: requests the signer's public keys. It is called for the first token, and again if a token
        does not verify, because there may be a new key."""
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        cached = self._verdicts.get(digest)
        if cached is not None:
            self._verdicts.move_to_end(digest)
            return cached
        raw = bearer.from_text(text)
        guard = self._guard or await self._load(root_keys)
        try:
            token = guard.inspect(raw)
        except Unauthorized:
            if time.monotonic() - self._loaded < _ROOT_KEYS_AGE:
                raise
            token = (await self._load(root_keys)).inspect(raw)
        verdict = self._verdicts[digest] = Verdict.on(token)
        if len(self._verdicts) > self._size:
            self._verdicts.popitem(last=False)
        return verdict

    async def public_keys(self, root_keys: RootKeys) -> dict[int, bytes]:
        """The signer's public keys. They are requested from the signer again, but at most every half
        minute."""
        if self._guard is None or time.monotonic() - self._loaded >= _ROOT_KEYS_AGE:
            await self._load(root_keys)
        return self._root_keys

    async def _load(self, root_keys: RootKeys) -> Guard:
        self._root_keys = await root_keys()
        self._guard = Guard(self._root_keys)
        self._loaded = time.monotonic()
        return self._guard


class Passwords:
    """Hashes passwords with Argon2id (2 passes over 64 MiB) on threads. Only a few passwords are hashed at a
    time, including those of clients that have disconnected meanwhile."""

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=2, memory_cost=64 * 1024, parallelism=1)
        self._turn = asyncio.Semaphore(_HASHERS_AT_ONCE)
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        async with self._turn:
            return await run_on_thread(self._hasher.hash, password)

    async def matches(self, stored: str | None, password: str) -> bool:
        """Whether `password` matches the hash `stored`. If there is no hash, the same work is done with a
        decoy, so that the answer takes as long."""
        if self._decoy is None:
            self._decoy = await self.hash("a password nobody has")
        async with self._turn:
            good = await run_on_thread(self._verify, stored or self._decoy, password)
        return good and stored is not None

    def _verify(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (VerificationError, InvalidHashError):
            return False


@dataclass(slots=True)
class SignInState:
    tokens: Tokens = field(default_factory=Tokens)
    passwords: Passwords = field(default_factory=Passwords)
