"""The connection to the relay, for a process that the relay itself started for a user over SSH
(`svc.remote`).

Such a process may open no socket. Instead it has a link: a socket that it and its child processes inherit. To
connect, the process creates a socket pair and sends one end over the link. The relay then serves that end as
a connection."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from localstore.core.encoding import b64u, unb64u
from localstore.core.errors import ClientError, Invalid, UsageError
from localstore.core.identity.ssh import CONNECT, FORWARD, SIGN, SignatureAnswer
from localstore.core.numbers import whole_number

if TYPE_CHECKING:
    from localstore.core.identity.keys import DeviceKey

VARIABLE = "SVC_SSH"
PATIENCE = 20.0  # seconds until the relay takes a connection
KEY_BYTES, SIGNATURE_BYTES = 32, 64
SIGN_PATIENCE = 90.0  # longer than the relay waits for an agent
ANSWER_BYTES = 16 * 1024


class Link(msgspec.Struct, frozen=True):
    """The link of a session over SSH to its relay. `fd` is the file descriptor of the link's socket. `origin`
    is the relay's origin. `agent` is the public key with which the user's forwarded ssh-agent signs, or b""
    without an agent."""

    fd: int
    origin: str
    agent: bytes = b""

    @property
    def variable(self) -> str:
        """The value of the environment variable SVC_SSH. From it, child processes know how to reach the
        relay."""
        return f"{self.fd} {self.origin} {b64u(self.agent)}".strip()

    def key(self) -> DeviceKey:
        """Return the device key of the user, in the forwarded ssh-agent. Raises UsageError if no agent is
        forwarded."""
        if not self.agent:
            raise UsageError(FORWARD)
        from svc.http.forwarded_key import ForwardedKey  # libsodium, which most commands do not need

        return ForwardedKey(b"", self.agent, b"", self._sign)

    def _sign(self, message: bytes) -> bytes:
        """Return the signature of a message, made by the user's ssh-agent. Raises ClientError with the
        relay's reason if that fails."""
        data = bytearray()
        try:
            with self._hand_socket(SIGN) as ours:
                ours.settimeout(SIGN_PATIENCE)
                ours.sendall(message)
                ours.shutdown(socket.SHUT_WR)
                while (piece := ours.recv(ANSWER_BYTES)) and len(data) < ANSWER_BYTES:
                    data += piece
            answer = msgspec.json.decode(data, type=SignatureAnswer)
        except (OSError, msgspec.DecodeError):
            raise ClientError("the relay did not ask your ssh-agent; nothing was signed") from None
        if len(answer.signature) != SIGNATURE_BYTES:
            raise ClientError(answer.refused or FORWARD)
        return answer.signature

    def connect(self) -> socket.socket:
        """Open a connection to the relay, and return its socket. Raises OSError, also as TimeoutError."""
        return self._hand_socket(CONNECT)

    def _hand_socket(self, request: bytes) -> socket.socket:
        """Send the relay this request together with one end of a new socket pair. Returns the other end.
        Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            with theirs, socket.socket(fileno=os.dup(self.fd)) as link:
                link.settimeout(PATIENCE)
                socket.send_fds(link, [request], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return ours


def link(environment: Mapping[str, str] = os.environ) -> Link | None:
    """Return the link of this process; None if it is not in a session over SSH."""
    value = environment.get(VARIABLE, "")
    number, _, rest = value.partition(" ")
    origin, _, agent = rest.partition(" ")
    fd = whole_number(number, 9)
    if not origin or fd is None:
        return None
    try:
        return Link(fd, origin, unb64u(agent, KEY_BYTES) if agent else b"")
    except Invalid:
        return None


def list_inherited() -> tuple[int, ...]:
    """Return the file descriptors that child processes must inherit. In a session over SSH this is the socket
    to the relay (the link). Otherwise there are none."""
    relay_link = link()
    return (relay_link.fd,) if relay_link is not None else ()
