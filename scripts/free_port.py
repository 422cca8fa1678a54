"""A port for a server that a script starts."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
