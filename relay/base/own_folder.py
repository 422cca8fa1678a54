"""Marks folders that hold secrets of a relay, so that no working copy includes their files."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from localstore.core.paths import OWN_FOLDER_TEXT

MARK = ".svc"  # a folder with an entry of this name is left out by every push of a folder above it


def mark(folder: Path) -> None:
    """Mark a folder as one with secrets, by a file `.svc` that keeps it out of every push. Does nothing if
    the folder has an entry of this name. Raises OSError if the file cannot be written."""
    with contextlib.suppress(FileExistsError):
        descriptor = os.open(folder / MARK, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(OWN_FOLDER_TEXT)
