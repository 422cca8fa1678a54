"""The token signer: the only process that reads the root keys.

    relay signer --data DIR        ->  run(DIR)

It listens on `signer.sock` in the data folder (0600) and does two things: it mints tokens of one fixed form
within limits, and it returns the public keys. So whoever controls the process that answers HTTP requests can
obtain tokens, but never a key. The file `signer.keys` (0600) has a line `id hex` for each root key. Tokens
are minted with the last key; tokens of older keys verify until their line is removed.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from localstore.core.errors import Invalid, SvcError, Unavailable
from localstore.core.identity import capability
from localstore.core.model.limits import REFRESH_TOKEN, SCRIPT_TOKEN_DAYS
from relay.signing.client import (
    ENCODE,
    LENGTH,
    MESSAGE_BYTES,
    SOCKET_NAME,
    Answer,
    KeysRequest,
    Minted,
    MintRequest,
    PublicKeys,
    SigningRefused,
)

KEYS_NAME = "signer.keys"
CAPABILITIES = frozenset({"read", "talk", "write", "admin"})
LONGEST = REFRESH_TOKEN  # seconds a token may live that is bound to no key
LONGEST_BOUND = SCRIPT_TOKEN_DAYS * 24 * 3600
SOCKET_PATH_BYTES = 107  # what the kernel takes

_requests: msgspec.msgpack.Decoder[MintRequest | KeysRequest] = msgspec.msgpack.Decoder(
    MintRequest | KeysRequest
)


class RootKeys:
    """The root keys of a data folder: id → private key."""

    def __init__(self, keys: dict[int, bytes]) -> None:
        self._keys = keys
        self._newest = max(keys)
        self._public = {number: capability.root_public(private) for number, private in keys.items()}

    @classmethod
    def load(cls, data_dir: Path) -> RootKeys:
        """Read the keys in `signer.keys`. If the file does not exist, a first key is made."""
        path = data_dir / KEYS_NAME
        if not path.exists():
            rotate(data_dir)
        try:
            lines = [line.split() for line in path.read_text("ascii").splitlines()]
            keys = {int(number): bytes.fromhex(private) for number, private in lines}
            return cls(keys)
        except (ValueError, Invalid):
            raise Invalid(f"{path} is damaged; restore it from the backup") from None

    def answer(self, request: MintRequest | KeysRequest) -> Answer:
        if isinstance(request, KeysRequest):
            return PublicKeys(self._public)
        try:
            return Minted(self._mint(request))
        except SvcError as error:
            return SigningRefused(error.detail)

    def _mint(self, body: MintRequest) -> bytes:
        if not set(body.caps) <= CAPABILITIES:
            raise Invalid(f"capabilities are {', '.join(sorted(CAPABILITIES))}")
        lifetime = body.expires - time.time()
        longest = LONGEST if body.bound_key is None else LONGEST_BOUND
        if not 0 < lifetime <= longest:
            raise Invalid(f"a token of this kind lives at most {longest} seconds and must end in the future")
        return capability.mint(
            self._keys[self._newest],
            user=body.user,
            session=body.session,
            bound_key=body.bound_key,
            caps=body.caps,
            expires=datetime.fromtimestamp(body.expires, UTC),
            root_key_id=self._newest,
        )


def rotate(data_dir: Path) -> int:
    """Add a root key and return its id. New tokens are minted with it once the signer is restarted."""
    path = data_dir / KEYS_NAME
    with _private_umask(), path.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        numbers = [int(line.split()[0]) for line in file.read().splitlines()]
        number = max(numbers, default=0) + 1
        file.write(f"{number} {capability.new_root_key().hex()}\n")
        file.flush()
        os.fsync(file.fileno())
    return number


def run(data_dir: Path, with_parent: bool = False) -> None:
    """Serve until SIGTERM. `with_parent`: serve until standard input closes, which happens when the parent
    process dies. Raises Unavailable when another signer serves this folder."""
    path = data_dir / SOCKET_NAME
    if len(os.fsencode(path)) > SOCKET_PATH_BYTES:
        raise Invalid(f"{path} is too long for a socket; choose a shorter data folder")
    with (data_dir / KEYS_NAME).with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Unavailable(f"another signer serves {data_dir}") from None
        path.unlink(missing_ok=True)  # of a signer that was killed; the lock says that none is alive
        asyncio.run(_serve(RootKeys.load(data_dir), path, with_parent))
        path.unlink(missing_ok=True)


async def _serve(keys: RootKeys, path: Path, with_parent: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    if with_parent:
        loop.add_reader(sys.stdin.fileno(), _until_closed, stop)
    with _private_umask():
        server = await asyncio.start_unix_server(lambda r, w: _talk(keys, r, w), path)
    try:
        await stop.wait()
    finally:
        server.close()


def _until_closed(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        stop.set()
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


async def _talk(keys: RootKeys, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection until it ends or sends something invalid."""
    # Cancelled at the end of the process: Python 3.11 would print that as an error of the connection.
    with contextlib.suppress(EOFError, OSError, struct.error, msgspec.MsgspecError, asyncio.CancelledError):
        while True:
            (length,) = LENGTH.unpack(await reader.readexactly(LENGTH.size))
            if length > MESSAGE_BYTES:
                break
            answer = ENCODE(keys.answer(_requests.decode(await reader.readexactly(length))))
            writer.write(LENGTH.pack(len(answer)) + answer)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def _private_umask() -> Iterator[None]:
    """A context in which new files and sockets are accessible to their owner only."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


class Child:
    """A signer that the relay starts itself, for `--dev` and tests."""

    def __init__(self, process: asyncio.subprocess.Process, data_dir: Path) -> None:
        self.process, self.data_dir = process, data_dir

    @classmethod
    async def start(cls, data_dir: Path) -> Child:
        """Start the signer. Returns before it listens; see `wait_until_it_listens`."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", __name__, str(data_dir), stdin=asyncio.subprocess.PIPE
        )
        return cls(process, data_dir)

    async def wait_until_it_listens(self) -> None:
        """Wait until the signer answers. Raises Unavailable if it exits instead."""
        while not await is_served(self.data_dir):
            if self.process.returncode is not None:
                raise Unavailable("the token signer did not start; its message is above")
            await asyncio.sleep(0.02)

    async def stop(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        await self.process.wait()


async def is_served(data_dir: Path) -> bool:
    """Whether a signer serves this folder. All relays of one host share a signer."""
    try:
        _, writer = await asyncio.open_unix_connection(data_dir / SOCKET_NAME)
    except OSError:
        return False
    writer.close()
    return True


if __name__ == "__main__":
    try:
        run(Path(sys.argv[1]), with_parent=True)
    except SvcError as refusal:
        sys.exit(f"relay signer: {refusal.detail}")
