"""Signs with Ed25519 keys in the user's ssh-agent, which never reveals the secrets of its keys
(draft-ietf-sshm-ssh-agent).

A signature of the kind `ssh-ed25519` is a plain Ed25519 signature of the data. So a key in the ssh-agent can
be a device key."""

from __future__ import annotations

import base64
import hashlib
import socket
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from localstore.core.errors import ClientError, Invalid, UsageError
from localstore.core.identity import ssh_agent
from localstore.core.identity.keys import KEY_BYTES, SIGNATURE_BYTES, DeviceKey
from localstore.core.paths import terminal_safe

VARIABLE = "SSH_AUTH_SOCK"
_PATIENCE = 120.0  # seconds: the agent may ask its user


class AgentKey(DeviceKey, frozen=True):
    """A device key whose secret is in an ssh-agent. `ask` is called with a message and returns its
    signature."""

    ask: Callable[[bytes], bytes]

    def sign(self, message: bytes) -> bytes:
        return self.ask(message)


class AgentEntry(NamedTuple):
    """A key in the user's ssh-agent. `public` has the 32 bytes of the public key. `comment` is the key's name
    in the ssh-agent."""

    public: bytes
    comment: str

    @property
    def blob(self) -> bytes:
        return ssh_agent.encode_key(self.public)

    @property
    def fingerprint(self) -> str:
        digest = base64.b64encode(hashlib.sha256(self.blob).digest()).decode("ascii")
        return f"SHA256:{digest.rstrip('=')}"

    def key(self, environment: Mapping[str, str]) -> AgentKey:
        return AgentKey(b"", self.public, b"", lambda message: _sign(environment, self.blob, message))


def keys(environment: Mapping[str, str]) -> list[AgentEntry]:
    """Return the Ed25519 keys in the user's ssh-agent. Raises UsageError if there is no agent, ClientError if
    the agent fails."""
    answer = _ask(environment, ssh_agent.LIST, b"", ssh_agent.LISTED)
    entries = []
    (count,), rest = struct.unpack(">I", answer[:4]), answer[4:]
    with _unreadable():
        for _ in range(min(count, 1000)):
            blob, rest = ssh_agent.take_string(rest)
            comment, rest = ssh_agent.take_string(rest)
            name, point = ssh_agent.take_string(blob)
            if name == ssh_agent.ALGORITHM and len(point) == 4 + KEY_BYTES:
                entries.append(AgentEntry(point[4:], terminal_safe(comment.decode("utf-8", "replace")[:100])))
    return entries


def choose(listed: list[AgentEntry], named: str) -> AgentEntry:
    """Return the key with this fingerprint or comment. If `named` is "", return the only key. Raises
    UsageError unless exactly one key matches."""
    fitting = [key for key in listed if not named or named in (key.fingerprint, key.comment)]
    if len(fitting) == 1:
        return fitting[0]
    if not listed:
        raise UsageError(
            "your ssh-agent holds no Ed25519 key; make and add one: ssh-keygen -t ed25519; ssh-add"
        )
    choices = ", ".join(f"{key.fingerprint} ({key.comment})" for key in listed)
    raise UsageError(f"name one of the keys of your ssh-agent by fingerprint or comment: {choices}")


def _sign(environment: Mapping[str, str], blob: bytes, message: bytes) -> bytes:
    answer = _ask(environment, ssh_agent.SIGN, ssh_agent.signing_body(blob, message), ssh_agent.SIGNED)
    with _unreadable():
        name, raw = ssh_agent.take_signature(answer)
    if name != ssh_agent.ALGORITHM or len(raw) != SIGNATURE_BYTES:
        raise ClientError("your ssh-agent answered with another kind of signature")
    return raw


def _ask(environment: Mapping[str, str], kind: int, body: bytes, expected: int) -> bytes:
    path = environment.get(VARIABLE)
    if not path:
        raise UsageError(f"there is no ssh-agent ({VARIABLE} is not set); run: eval $(ssh-agent); ssh-add")
    try:
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(_PATIENCE)
            agent.connect(path)
            agent.sendall(ssh_agent.encode_request(kind, body))
            (length,) = struct.unpack(">I", _receive_exactly(agent, 4))
            if not 0 < length <= ssh_agent.ANSWER_BYTES:
                raise ClientError("your ssh-agent sent an answer of impossible length")
            answer = _receive_exactly(agent, length)
    except OSError as error:
        raise ClientError(f"your ssh-agent at {path} does not answer: {error}") from None
    if answer[0] != expected:
        raise ClientError("your ssh-agent refused; is the key locked, or does it ask for confirmation?")
    return answer[1:]


def _receive_exactly(agent: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        piece = agent.recv(length - len(data))
        if not piece:
            raise ClientError("your ssh-agent hung up")
        data += piece
    return bytes(data)


@contextmanager
def _unreadable() -> Iterator[None]:
    """A context that raises ClientError if the answer that is read in it is incomplete."""
    try:
        yield
    except Invalid:
        raise ClientError("your ssh-agent sent an answer that cannot be read") from None
