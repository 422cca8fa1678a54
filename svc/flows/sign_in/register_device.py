"""Registers a machine's device key on its first push."""

from __future__ import annotations

import os

import msgspec

from localstore.core.identity.keys import DeviceKey
from svc.api import Api
from svc.http.remote import link
from svc.http.session import TOKEN_VARIABLE, Sessions


def ensure_registered(api: Api, sessions: Sessions) -> None:
    """Register this machine's device key with the signed-in account, if it is not registered yet."""
    session = None if os.environ.get(TOKEN_VARIABLE) else sessions.find(api.origin)
    if session is not None and session.registered:
        return
    from svc.flows.sign_in.login import register_device  # everything about signing in, for once only

    register_device(api, sessions.identity, session.device_name if session else "")
    if session is not None:
        sessions.save(msgspec.structs.replace(session, registered=True))


def signing_key(api: Api, sessions: Sessions) -> DeviceKey:
    """Return the registered key that signs seals. It is this machine's key or, in a session over SSH, the key
    in the user's forwarded agent. Raises UsageError in a session over SSH without an agent."""
    if link() is None:
        ensure_registered(api, sessions)
    return sessions.signing_key()
