"""`svc diff`: the working copy against its last seal, as a unified patch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from localstore.core import diff as diffs
from localstore.core.limits import DIFF_BYTES
from localstore.core.paths import is_inside
from localstore.db import SealedFile, Stat
from localstore.sync.device import Device
from localstore.sync.recognise import adopt_state


def diff(device: Device, paths: Sequence[str] = ()) -> Iterator[bytes]:
    """One patch for each file that differs, below `paths` if some are given. Works offline for texts that
    this folder has seen."""
    adopt_state(device)
    scan = device.look_around()
    sealed = device.db.sealed()
    for path in sorted({*scan.files, *sealed}):
        if scan.unknown(path) or (paths and not any(is_inside(path, one) for one in paths)):
            continue
        was, now = sealed.get(path), scan.files.get(path)
        if (was.digest if was else None) != (now.digest if now else None):
            yield _patch(device, path, was, now)


def _patch(device: Device, path: str, was: SealedFile | None, now: Stat | None) -> bytes:
    binary = any(side is not None and (side.kind != "text" or side.size > DIFF_BYTES) for side in (was, now))
    if binary:
        return f"Binary files differ: {path}\n".encode()
    old = device.text(was.digest) if was else None
    new = device.files.read(path) if now else None
    return diffs.unified(old, new, path if was else None, path if now else None)
