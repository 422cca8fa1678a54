"""The settings of the app over SSH: TR_SSH_PORT, TR_SSH_HOST, TR_SSH_SESSIONS, TR_SSH_UIDS, TR_SSH_IDLE."""

from __future__ import annotations

from dataclasses import dataclass

from relay.base.environment import Environment

SESSIONS = 50
IDLE = 4 * 3600  # seconds
UIDS = 2_000_000_000  # unused by what distributions and systemd hand out


@dataclass(frozen=True, slots=True)
class SshSettings:
    """The settings of the app over SSH. Port 0: any free port. `sessions`: the highest number of sessions at
    a time. `uids`: first user id of the sessions if the relay runs as root. `idle`: seconds without a key
    press after which a session ends."""

    host: str
    port: int
    sessions: int
    uids: int
    idle: int


def read(env: Environment, host: str) -> SshSettings | None:
    """Read the settings of the app over SSH; None unless TR_SSH_PORT is set. `host`: the address to listen on
    if TR_SSH_HOST names none. Raises StartRefused for a number out of its range, and for a setting without
    TR_SSH_PORT."""
    env.require_beside("TR_SSH_PORT", "TR_SSH_HOST", "TR_SSH_SESSIONS", "TR_SSH_UIDS", "TR_SSH_IDLE")
    if env.get("TR_SSH_PORT") is None:
        return None
    return SshSettings(
        host=env.get("TR_SSH_HOST") or host,
        port=env.number("TR_SSH_PORT", 0, 0, 65535),
        sessions=env.number("TR_SSH_SESSIONS", SESSIONS, 1, 10_000),
        uids=env.number("TR_SSH_UIDS", UIDS, 1000, 2**31 - 20_000),
        idle=env.number("TR_SSH_IDLE", IDLE, 5, 24 * 3600),
    )
