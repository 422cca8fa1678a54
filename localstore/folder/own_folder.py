"""Marks the data folders of svc, so that no working copy around them ever includes them. They contain keys
and sessions.

The mark is a file `.svc`. Every walk skips a folder with an entry of this name, as it does for a nested
repository. No repository can contain an entry of this name, so nobody can mark somebody else's folder by a
push."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from localstore.core.paths import OWN_FOLDER_TEXT
from localstore.folder.link import FOLDER


def mark_own_folder(folder: Path) -> None:
    """Mark a data folder, which is created if missing. Does nothing if the folder already has a mark or is
    linked to a repository."""
    mark = folder / FOLDER
    if mark.exists():
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileExistsError), mark.open("xb") as file:  # another process marked it just now
        file.write(OWN_FOLDER_TEXT)
