"""Marks folders that hold secrets of a relay, so that no working copy takes what is in them."""

from __future__ import annotations

import contextlib
from pathlib import Path

from localstore.core.paths import OWN_FOLDER_TEXT

MARK = ".svc"  # a folder with an entry of this name is left out by every push of a folder above it


def mark(folder: Path) -> None:
    """Write the mark into the existing folder, unless it has one. Raises OSError."""
    with contextlib.suppress(FileExistsError), (folder / MARK).open("xb") as file:
        file.write(OWN_FOLDER_TEXT)
