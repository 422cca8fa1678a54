"""The API for sending the queued actions of an account."""

from __future__ import annotations

from localstore.core.errors import Unauthorized
from svc.api import Api, connect
from svc.flows.place.where import Where


def account_api(where: Where, origin: str, account: str) -> Api:
    """Return the API of a server with this machine's session, for sending the queued actions of an account.
    Raises Unauthorized if the session has ended, or if it belongs to another account."""
    session = where.sessions.find(origin)
    if session is None:
        raise Unauthorized(f"no session on {origin}; run: svc login --server {origin}")
    if session.user_id != account:
        raise Unauthorized(
            f"these actions are another account's, and this machine is signed in as {session.handle}; "
            f"run: svc login --server {origin}"
        )
    return connect(origin, where.sessions)
