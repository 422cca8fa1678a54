"""Reads ignore files of a folder without a scan."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from localstore.core.errors import TooLarge
from localstore.folder.walk_rules import LISTED, rules_in


def rules_of(root: Path, folder: str, names: Collection[str]) -> dict[str, str]:
    """The text of each ignore file that the folder has, by file name. `folder`: a path below `root`; `names`:
    the file names to look for. Links are not followed. A file that is too large (a scan reports it) counts
    as one that ignores everything."""
    try:
        opened = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for name in filter(None, folder.split("/")):
            above = opened
            try:
                opened = os.open(name, LISTED, dir_fd=above)
            finally:
                os.close(above)
    except OSError:
        return {}
    try:
        return rules_in(opened, folder + "/" if folder else "", names)
    except TooLarge:
        return dict.fromkeys(names, "*")
    finally:
        os.close(opened)
