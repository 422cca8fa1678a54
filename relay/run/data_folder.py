"""The data folder of a node. It is private to its owner and holds the secrets that `--dev` makes. If the
database is SQLite, one process locks the folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from relay.base import own_folder
from relay.base.environment import StartRefused
from relay.config import DEV_SECRETS


def make(folder: Path) -> None:
    """Create the data folder, accessible to its owner only; if it exists, remove the rights of other users.
    The folder is also marked (`relay.base.own_folder`), so that a working copy around it does not include
    it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o700)
        own_folder.mark(folder)
    except OSError as error:
        raise StartRefused(f"the data folder {folder} cannot be used: {error.strerror}") from None


def dev_secrets(folder: Path, given: Mapping[str, str]) -> dict[str, str]:
    """Add the secrets that `given` lacks, from the folder `secrets/`, and return all. A secret that is not
    there either is made and stored there (0600)."""
    secrets_folder = folder / "secrets"
    secrets_folder.mkdir(mode=0o700, exist_ok=True)
    completed = dict(given)
    for name in DEV_SECRETS:
        if given.get(name) or given.get(f"{name}_FILE"):
            continue
        completed[name] = _read_or_make_secret(secrets_folder / name.lower())
    return completed


def _read_or_make_secret(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except FileNotFoundError:
        value = secrets.token_hex(32)
        write_private(path, value.encode("ascii"))
        return value


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only its owner can read (0600)."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def serving(folder: Path, shared: bool) -> Iterator[None]:
    """A context that locks the data folder, by the file `relay.lock`. If `shared`, all relays of one
    PostgreSQL database may hold the lock; otherwise (SQLite) only one process. The operating system releases
    the lock however the process ends."""
    with (folder / "relay.lock").open("a+") as file:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartRefused(
                f"another relay is serving {folder}; SQLite takes one process, stop that one first"
            ) from None
        yield
