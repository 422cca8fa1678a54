"""`python -m svc.remote FD FOLDER` runs the app, or one command, for a user over SSH. A relay starts it.

FD is the file descriptor of the link to the relay (`svc.http.remote`). The first message on the link is a
`SessionStart`. FOLDER is an empty folder for this session only. `python -m svc.remote --try FOLDER DATA`
confines itself, and exits with 0 if it can then reach neither the folder DATA nor a network. The relay runs
this check before it accepts connections."""

from __future__ import annotations

import fcntl
import importlib
import os
import socket
import sys
import termios
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from localstore.core.errors import EXIT_FAILED, ClientError
from localstore.core.identity.keys import DeviceKey
from localstore.core.identity.ssh import TOLD_BYTES, SessionStart
from svc.http.identity import store_identity
from svc.http.remote import VARIABLE, Link
from svc.http.session import Session, Sessions
from svc.remote.confine import confine

EARLY = ("svc.cmd.frame.app", "svc.cmd.tui", "tui.app")
"""Loaded before the process confines itself, so that what the system does for an import is done."""


def main() -> NoReturn:
    from svc.__main__ import answer, leave

    try:
        if sys.argv[1] == "--try":
            leave(_try(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:] == ["--own-user"]))
        words = _begin(int(sys.argv[1]), Path(sys.argv[2]))
    except ClientError as error:
        sys.stderr.write(f"svc: {error.detail}\n")
        leave(EXIT_FAILED)
    leave(answer(words))


def _begin(fd: int, folder: Path) -> list[str]:
    """Read the relay's first message, confine this process, and sign in. Returns the words of the command
    line to run."""
    with socket.socket(fileno=os.dup(fd)) as link:
        start = msgspec.json.decode(link.recv(TOLD_BYTES), type=SessionStart)
    if start.terminal:
        with suppress(OSError):
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for name in ("svc", "tui", "localstore", *(EARLY[:1] if start.words else EARLY)):
        importlib.import_module(name)
    confine(folder, start.own_user)
    home = folder / "home"
    os.environ |= {VARIABLE: Link(fd, start.origin, start.agent).variable, "SVC_HOME": str(home)}
    home.mkdir(mode=0o700)
    key = DeviceKey.generate(start.seed)
    store_identity(home, key)
    Sessions(home).save(
        Session(
            origin=start.origin,
            token=start.token,
            user_id=start.user_id,
            session_id=start.session_id,
            handle=start.handle,
            expires_at=start.expires_at,
        )
    )
    return start.words or ["tui"]


def _try(folder: Path, data: Path, own_user: bool) -> int:
    """Confine this process and test that it can reach neither `data` nor a network. Returns the exit code.
    `own_user` says that no other process runs under the same uid."""
    for name in ("svc", "tui", "localstore", *EARLY):
        importlib.import_module(name)
    confine(folder, own_user)
    (folder / "kept").write_text("")
    for name, reach in (("the data folder", lambda: list(data.iterdir())), ("a network", socket.socket)):
        with suppress(PermissionError):
            reach()
            raise ClientError(f"a confined process reaches {name}")
    return 0


if __name__ == "__main__":
    main()
