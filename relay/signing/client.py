"""The client by which a relay uses the token signer, a process of its own. It requests tokens and never sees
a private key."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from localstore.core.errors import Invalid, Unavailable

SOCKET_NAME: Final = "signer.sock"
MESSAGE_BYTES: Final = 64 * 1024
TIMEOUT: Final = 5.0  # seconds for one answer
LENGTH: Final = struct.Struct(">I")


class MintRequest(msgspec.Struct, tag="mint", frozen=True):
    """The request to mint a token. `user`, `session`: ids of 16 bytes. `bound_key`: the public key (32 bytes)
    to which the token is bound. `expires`: whole seconds of Unix time."""

    user: bytes
    session: bytes
    bound_key: bytes | None
    caps: list[str]
    expires: int


class KeysRequest(msgspec.Struct, tag="keys", frozen=True):
    """The request for the public root keys."""


class Minted(msgspec.Struct, tag="minted", frozen=True):
    token: bytes


class PublicKeys(msgspec.Struct, tag="public_keys", frozen=True):
    """The public root keys: id → Ed25519 public key. Tokens are minted with the key of the highest id; tokens
    of the other keys still verify."""

    keys: dict[int, bytes]


class SigningRefused(msgspec.Struct, tag="refused", frozen=True):
    detail: str


Request = MintRequest | KeysRequest
Answer = Minted | PublicKeys | SigningRefused
ENCODE: Final = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Minted | PublicKeys | SigningRefused] = msgspec.msgpack.Decoder(Answer)


class Signer:
    """A connection to the signer of a data folder, opened when needed and reopened after it was lost."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / SOCKET_NAME
        self._lock = asyncio.Lock()
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def mint(
        self,
        *,
        user: bytes,
        session: bytes,
        bound_key: bytes | None,
        caps: Iterable[str],
        expires: datetime,
    ) -> bytes:
        """Mint a capability token. Raises Invalid when the signer refuses, and Unavailable when it does not
        answer."""
        request = MintRequest(
            user, session, bound_key, sorted(caps), int(expires.astimezone(UTC).timestamp())
        )
        answer = await self._ask(request)
        if not isinstance(answer, Minted):
            raise Unavailable("the token signer sent an unexpected answer")
        return answer.token

    async def public_keys(self) -> dict[int, bytes]:
        """The public root keys by id, with which tokens are verified. Raises Unavailable when the signer does
        not answer."""
        answer = await self._ask(KeysRequest())
        if not isinstance(answer, PublicKeys):
            raise Unavailable("the token signer sent an unexpected answer")
        return answer.keys

    async def close(self) -> None:
        streams, self._streams = self._streams, None
        if streams is not None:
            streams[1].close()

    async def _ask(self, request: Request) -> Answer:
        async with self._lock:
            fresh = self._streams is None
            try:
                answer = await self._exchange(request)
            except OSError:
                if fresh:
                    raise _not_running() from None
                answer = await self._retry(request)  # it was restarted since the last request
        if isinstance(answer, SigningRefused):
            raise Invalid(f"the token signer refused: {answer.detail}")
        return answer

    async def _retry(self, request: Request) -> Answer:
        try:
            return await self._exchange(request)
        except OSError:
            raise _not_running() from None

    async def _exchange(self, request: Request) -> Answer:
        """Send one request and read its answer. Any interruption closes the connection, because otherwise a
        late answer would be read as the answer to the next request."""
        done = False
        try:
            async with asyncio.timeout(TIMEOUT):
                if self._streams is None:
                    self._streams = await asyncio.open_unix_connection(self._path)
                reader, writer = self._streams
                body = ENCODE(request)
                writer.write(LENGTH.pack(len(body)) + body)
                await writer.drain()
                (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
                if length > MESSAGE_BYTES:
                    raise OSError("the token signer sent an answer of impossible length")
                answer = _decoder.decode(await reader.readexactly(length))
            done = True
            return answer
        except (EOFError, msgspec.MsgspecError) as error:
            raise OSError(str(error)) from None
        finally:
            if not done:
                await self.close()


def _not_running() -> Unavailable:
    return Unavailable("the token signer is not running; start it with: relay signer --data DIR")
