"""Checks whether a started app is ready, by the rule in `launch.ready` of its manifest."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

from localstore.core.launch import Ready

_SECONDS = 2.0


def port_of_ready(ready: Ready | None) -> int | None:
    """Return the port that the app opens when it is ready. None if the manifest has no rule for being ready,
    or if the rule is a number of seconds."""
    if ready is None:
        return None
    return ready.port or (urlsplit(ready.http).port if ready.http else None)


def is_ready(ready: Ready, elapsed: float) -> bool:
    """Return whether the app counts as started. `elapsed` is the number of seconds since its start."""
    if ready.http is not None:
        return _answers(ready.http)
    if ready.port is not None:
        return _connects(ready.port)
    return elapsed >= ready.seconds


def _answers(address: str) -> bool:
    """Return whether a page can be loaded from the address with a status below 400."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("GET", (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))
        return connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _connects(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), _SECONDS).close()
    except OSError:
        return False
    return True
