"""The link of a process that a relay started for somebody who came over SSH (`svc.remote`).

Such a process may open no socket. It asks the relay over the link, a socket that it was started with, and its
children with it, to connect a socket pair to the relay.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping

import msgspec

from localstore.core.identity.ssh import CONNECT

VARIABLE = "SVC_SSH"
PATIENCE = 20.0  # seconds until the relay takes a connection


class Link(msgspec.Struct, frozen=True):
    """`fd`: the link; `origin`: the relay behind it."""

    fd: int
    origin: str

    @property
    def variable(self) -> str:
        """The value of SVC_SSH."""
        return f"{self.fd} {self.origin}"

    def connect(self) -> socket.socket:
        """A new connection to the relay. Raises OSError, TimeoutError among them."""
        ours, theirs = socket.socketpair()
        try:
            with theirs, socket.socket(fileno=os.dup(self.fd)) as link:
                link.settimeout(PATIENCE)
                socket.send_fds(link, [CONNECT], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        return ours


def link(environment: Mapping[str, str] = os.environ) -> Link | None:
    """The link of this process; None outside of a session over SSH."""
    told = environment.get(VARIABLE, "")
    fd, _, origin = told.partition(" ")
    return Link(int(fd), origin) if origin and fd.isdecimal() else None


def inherited() -> tuple[int, ...]:
    """The descriptors that a process started by this one needs."""
    found = link()
    return (found.fd,) if found is not None else ()
