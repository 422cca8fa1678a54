"""What the relay tells the process that runs the app, or one command, for somebody who came over SSH."""

from __future__ import annotations

from typing import Literal

import msgspec

MODULE = "svc.remote"  # `python -m`; the relay starts it by this name
TOLD_BYTES = 64 * 1024
READS_AND_TALKS = "this session may read, comment and review; for more, install svc and sign in"


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The first message on the link. `seed`: of the key that the token is bound to, made for this session
    alone; `words`: a command line, empty for the app; `terminal`: standard input is one; `own_user`: no other
    process has this uid."""

    v: Literal[1] = 1
    origin: str
    token: str
    seed: bytes
    user_id: str
    session_id: str
    handle: str | None
    expires_at: str
    words: list[str] = []
    terminal: bool = False
    own_user: bool = False


CONNECT = b"connect"
"""A request on the link, with one end of a socket pair: make this a connection to the relay."""
