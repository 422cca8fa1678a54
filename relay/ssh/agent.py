"""The forwarded ssh-agent of a connection. It is used only for signatures by the key that signed in, on
messages in svc's own formats that the user of this session could have intended.

An ssh-agent signs everything it is given, and the confined process may be controlled by an attacker. So each
message is parsed here first. It must be a request to this relay for an endpoint in `REQUESTS`, or a seal or
release of this account and key.
"""

from __future__ import annotations

import asyncio
import re
import struct
from collections.abc import Iterator
from typing import Any

import asyncssh
from asyncssh.stream import SSHUNIXStreamSession

from localstore.core import publication, seal
from localstore.core.endpoint import Endpoint
from localstore.core.errors import Invalid, SvcError
from localstore.core.identity import keys, request_signature, ssh_agent
from localstore.core.identity.ssh import FORWARD, SIGN_BYTES
from localstore.core.model import issue as issues
from localstore.core.model import label as labels
from localstore.core.model import merge as merges
from localstore.core.model import proposal as proposals
from localstore.core.model import publication as publications
from localstore.core.model import ref as refs
from localstore.core.model import release as releases
from localstore.core.model import social
from localstore.core.model import thread as threads
from localstore.core.model.seal import FINALIZE_SEALS

PATIENCE = 60.0  # seconds that an agent has; it may ask its person
REQUESTS: tuple[Endpoint[Any], ...] = (
    merges.PREPARE,
    merges.FINALIZE,
    merges.AUTO,
    merges.AUTO_OFF,
    merges.UPDATE_PREPARE,
    merges.UPDATE_FINALIZE,
    threads.PREPARE,
    threads.UPDATE,
    FINALIZE_SEALS,
    proposals.CREATE,
    proposals.UPDATE,
    proposals.ADD_LABEL,
    proposals.REMOVE_LABEL,
    issues.CREATE,
    issues.UPDATE,
    issues.ADD_LABEL,
    issues.REMOVE_LABEL,
    labels.CREATE,
    labels.UPDATE,
    labels.DELETE,
    refs.CREATE,
    refs.DELETE,
    releases.CREATE,
    releases.EDIT,
    releases.DELETE,
    publications.CREATE,
    social.STAR,
    social.UNSTAR,
    social.WATCH,
    social.UNWATCH,
)
"""The changes that are signed over SSH. None is about an account, its keys, who has rights, or file bytes."""

_BASE = re.compile(
    r'"@method": (?P<method>[A-Z]{3,7})\n"@authority": (?P<authority>[!-~]{1,300})\n'
    r'"@path": (?P<path>[!-~]{1,2000})\n"@query": \?[!-~]{0,2000}\n'
    r'"content-digest": sha-256=:[A-Za-z0-9+/]{43}=:\n'
    r'"@signature-params": \("@method" "@authority" "@path" "@query" "content-digest"\)'
    r';created=[0-9]{10,11};nonce="[A-Za-z0-9_-]{22}";keyid="(?P<key>[A-Za-z0-9_-]{43})"'
    rf';alg="ed25519";tag="{request_signature.TAG}"'
)


class SignatureRefused(Exception):
    """Raised if a signature is refused. The text is a sentence for the user."""


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    for endpoint in REQUESTS:
        parts = re.split(r"\{[a-z_]+(\.\.\.)?\}", endpoint.path)  # text, "..." or None, text, …
        spelled = (
            (".+" if part else "[^/]+") if index % 2 else re.escape(part or "")
            for index, part in enumerate(parts)
        )
        yield endpoint.method, re.compile("".join(spelled))


_REQUESTS = tuple(_patterns())


def kind_of(message: bytes, origin: str, account_id: str, key_id: str) -> str:
    """The kind of a message that may be signed: request, seal or release. `origin`: the relay that a request
    must be for; `account_id`, `key_id`: those that the message must name. Raises SignatureRefused for any
    other message."""
    if message.startswith(seal.PREFIX):
        try:
            by = seal.decode(message).provenance
        except SvcError:
            raise SignatureRefused("this is not a seal; nothing was signed") from None
        if (by.account_id, by.device_key_id) == (account_id, key_id):
            return "seal"
        raise SignatureRefused("this seal names another account or key; nothing was signed")
    if message.startswith(publication.DOMAIN):
        return "release"
    base = _BASE.fullmatch(message.decode("ascii", "replace"))
    if base is None or base["key"] != key_id or base["authority"] != request_signature.authority_of(origin):
        raise SignatureRefused("this is not signed over SSH; use an installed svc")
    path = base["path"]
    if not any(base["method"] == method and pattern.fullmatch(path) for method, pattern in _REQUESTS):
        raise SignatureRefused("this change is not signed over SSH; use an installed svc")
    return "request"


class Agent:
    """The ssh-agent of one connection. `public`: the key that signed in. `forwarded`: whether the client
    forwards its agent (`ssh -A`)."""

    def __init__(self, connection: Any, public: bytes) -> None:
        self._connection, self.public = connection, public
        self._blob = ssh_agent.encode_key(public)
        self._one_at_a_time = asyncio.Lock()  # an agent may ask its person about each
        self.forwarded = False

    async def sign(self, message: bytes) -> bytes:
        """Sign the message with the key that signed in. Returns the signature (64 bytes). Raises
        SignatureRefused."""
        if not self.forwarded:
            raise SignatureRefused(FORWARD)
        try:
            async with asyncio.timeout(PATIENCE), self._one_at_a_time:
                return await self._sign(message)
        except TimeoutError:
            raise SignatureRefused(
                f"your ssh-agent did not answer in {PATIENCE:.0f} s; does it wait for you to confirm? "
                "Nothing was signed; try again"
            ) from None
        except (OSError, Invalid, asyncssh.Error, asyncio.IncompleteReadError, struct.error):
            raise SignatureRefused(
                "your ssh-agent does not answer over this connection; see that it runs and holds this key "
                "(ssh-add -l), connect again with ssh -A. Nothing was signed"
            ) from None

    async def _sign(self, message: bytes) -> bytes:
        answer = await self._ask(ssh_agent.SIGN, ssh_agent.signing_body(self._blob, message))
        if answer[:1] != bytes((ssh_agent.SIGNED,)):
            raise SignatureRefused(await self._why_refused())
        name, raw = ssh_agent.take_signature(answer[1:])
        if name != ssh_agent.ALGORITHM or not keys.verify(self.public, message, raw):
            raise SignatureRefused("your ssh-agent answered with a signature that does not verify")
        return raw

    async def _why_refused(self) -> str:
        answer = await self._ask(ssh_agent.LIST, b"")
        if answer[:1] == bytes((ssh_agent.LISTED,)) and self._blob not in answer:
            return (
                "your ssh-agent does not hold the key that you connected with; add it with ssh-add and try "
                "again. Nothing was signed"
            )
        return "your ssh-agent refused: it is locked, or you did not confirm it. Nothing was signed"

    async def _ask(self, kind: int, body: bytes) -> bytes:
        """Send a request of the type `kind` to the ssh-agent, on a separate channel. Returns the answer."""
        channel = self._connection.create_agent_channel()
        session = await channel.open(SSHUNIXStreamSession)
        reader = asyncssh.SSHReader[bytes](session, channel)
        try:
            asyncssh.SSHWriter[bytes](session, channel).write(ssh_agent.encode_request(kind, body))
            (length,) = struct.unpack(">I", await reader.readexactly(4))
            if not 0 < length <= ssh_agent.ANSWER_BYTES:
                raise OSError("an answer of impossible length")
            return await reader.readexactly(length)
        finally:
            channel.abort()


async def read_request(sock: Any) -> bytes:
    """Read the message that is to be signed: all bytes until the sender stops writing. Raises OSError for a
    message that is too long, and TimeoutError if it is not complete in time."""
    loop, received = asyncio.get_running_loop(), bytearray()
    async with asyncio.timeout(10):
        while piece := await loop.sock_recv(sock, 65536):
            received += piece
            if len(received) > SIGN_BYTES:
                raise OSError("too long")
    return bytes(received)
