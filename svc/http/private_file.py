"""Reads and writes files that only their owner can read (mode 0600, in a folder of mode 0700). A file is
written completely or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from localstore.core.errors import ClientError
from localstore.folder.own_folder import mark_own_folder


def read_private(path: Path) -> bytes | None:
    """Return the content of the file; None if it does not exist. Raises ClientError if it cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failure_of("read", path, error) from None


def mark_private(folder: Path) -> None:
    """Create a folder for data of svc if it does not exist. Mark it so that its files never become part of a
    repository. Raises ClientError if that fails."""
    try:
        mark_own_folder(folder)
    except OSError as error:
        raise _failure_of("write", folder, error) from None


def write_private(path: Path, content: bytes) -> None:
    """Write the file, replacing an older one in a single step. Raises ClientError if that fails."""
    try:
        temporary = _temporary(path, content)
        temporary.replace(path)
    except OSError as error:
        raise _failure_of("write", path, error) from None


def create_private(path: Path, content: bytes) -> bool:
    """Create the file. If it exists, changes nothing and returns False. Raises ClientError if the file cannot
    be written."""
    try:
        temporary = _temporary(path, content)
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True
    except OSError as error:
        raise _failure_of("write", path, error) from None


def _temporary(path: Path, content: bytes) -> Path:
    import tempfile  # most commands only read, and it loads with `random`

    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mkstemp makes it 0600
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Path(name)


def _failure_of(verb: str, path: Path, error: OSError) -> ClientError:
    return ClientError(f"cannot {verb} {path}: {error.strerror or error}; check SVC_HOME and its permissions")
