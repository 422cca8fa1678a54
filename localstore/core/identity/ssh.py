"""Messages between the relay and a process that the relay starts for an SSH connection. The process runs the
terminal app, or one command."""

from __future__ import annotations

from typing import Literal

import msgspec

MODULE = "svc.remote"  # `python -m`; the relay starts it by this name
TOLD_BYTES = 64 * 1024
READS_AND_TALKS = (
    "this session may read, comment and review; for more, connect with ssh -A, or install svc and sign in"
)
SIGNS = "changes are signed by your ssh-agent; files are not changed here"
FORWARD = (
    "this needs a signature of your key: add it to your ssh-agent (ssh-add) and connect again with ssh -A, "
    "or use an installed svc"
)
TALKS = "talks"  # the reason of a refusal to a credential that may read and talk
SIGN_BYTES = 256 * 1024


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    """The first message of the relay to the process that it started. `seed`: private half of the key that the
    token is bound to, made only for this session. `agent`: public key with which the user's forwarded
    ssh-agent signs, b"" without an agent. `words`: the command line to run, empty to run the app. `terminal`:
    whether standard input is a terminal. `own_user`: whether the process has a user id of its own, under
    which no other process runs."""

    v: Literal[1] = 1
    origin: str
    token: str
    seed: bytes
    user_id: str
    session_id: str
    handle: str | None
    expires_at: str
    agent: bytes = b""
    words: list[str] = []
    terminal: bool = False
    own_user: bool = False


CONNECT = b"connect"
"""A request on the link, with one end of a socket pair: make this a connection to the relay."""
SIGN = b"sign"
"""A request on the link, with one end of a socket pair: read what it holds, sign it by the agent, and answer
with a `SignatureAnswer`."""


class SignatureAnswer(msgspec.Struct, frozen=True):
    """The answer to a request for a signature. `signature`: 64 bytes; b"" if it was refused. `refused`: the
    reason."""

    signature: bytes = b""
    refused: str = ""
