"""`svc diff`: the working copy against its last seal, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from localstore.core import diff as diffs
from localstore.core.errors import NotFound
from localstore.core.limits import DIFF_BYTES
from localstore.core.model import ChangedFile
from localstore.core.paths import is_inside
from localstore.db import SealedFile
from localstore.stats import Stat
from localstore.sync.device import Device
from localstore.sync.recognise import adopt_state


def diff(device: Device, paths: Sequence[str] = ()) -> Iterator[ChangedFile]:
    """Each file that differs, below `paths` if some are given, with its patch if it is a text. Works offline
    for texts that this folder has seen. NotFound for a path that is neither here nor in the last seal."""
    adopt_state(device)
    scan = device.look_around()
    sealed = device.db.sealed()
    known = sorted({*scan.files, *sealed})
    for one in paths:
        if not any(is_inside(path, one) for path in known):
            raise NotFound(f"{one} is neither in this folder nor in its last seal; see: svc status")
    for path in known:
        if scan.unknown(path) or (paths and not any(is_inside(path, one) for one in paths)):
            continue
        was, now = sealed.get(path), scan.files.get(path)
        if (was.digest if was else None) != (now.digest if now else None):
            yield _changed(device, path, was, now)


def _changed(device: Device, path: str, was: SealedFile | None, now: Stat | None) -> ChangedFile:
    status: Literal["added", "removed", "modified"] = (
        "added" if was is None else "removed" if now is None else "modified"
    )
    sides = [side for side in (was, now) if side is not None]
    if any(side.kind != "text" or side.size > DIFF_BYTES for side in sides):
        binary = any(side.kind != "text" for side in sides)
        return ChangedFile(path=path, status=status, binary=binary, additions=0, deletions=0, patch=None)
    old = device.text(was.digest) if was else None
    new = device.files.read(path) if now else None
    added, deleted = diffs.stat(old, new)
    patch = diffs.unified(old, new, path if was else None, path if now else None)
    return ChangedFile(
        path=path,
        status=status,
        binary=False,
        additions=added,
        deletions=deleted,
        patch=patch.decode("utf-8", "replace"),
    )
