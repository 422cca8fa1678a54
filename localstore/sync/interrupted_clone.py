"""Finds the files that an interrupted clone wrote, so that the clone can continue.

The record names the seal that is being cloned (`CLONING`) before the first file is written. A file belongs to
the clone if it has the sealed bytes of its path, or only the beginning of them because the write was cut
short. Every other file is the user's."""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core.errors import NotFound
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import Stat
from localstore.record.database import SealedFile
from localstore.record.entry import known_by_bytes
from localstore.sync import verify
from localstore.sync.recognise import recognise
from localstore.sync.working_copy import SEALED_AT, WorkingCopy

CLONING = "cloning"  # the seal that a clone writes, kept until all of it is here


def resume_clone(copy: WorkingCopy) -> None:
    """Turn an interrupted clone into a working copy at the seal that was being cloned. A pull then fetches
    the missing files. Does nothing for any other working copy."""
    begun = copy.db.text(CLONING)
    if begun is None or copy.last_seal is not None:
        return
    try:
        seal = copy.transport.seal(begun)
        tree = copy.transport.tree(begun)
    except NotFound:  # the branch was deleted, or made again
        recognise(copy)
        return
    payload = verify.seal(seal, begun, copy.repo.repo_id)
    files = copy.read_tree(begun, payload, tree)
    present = files_written(copy, files)
    with copy.db.step():
        for path in present:
            if path not in copy.entries:
                kind, digest, size = files[path]
                copy.save(known_by_bytes(path, kind, digest, size))
    copy.record_seal(begun, dict(files), whole=True)
    copy.db.put(SEALED_AT, payload.created_at)


def files_written(copy: WorkingCopy, files: Mapping[str, SealedFile]) -> dict[str, Stat]:
    """The stats of the files that an interrupted clone wrote completely, by path. `files`: the files of the
    seal.

    Removes files whose write was cut short. Drops the entries of missing files, so that these do not count as
    deleted."""
    scan = copy.scan()
    torn = _torn_files(copy, files, scan)
    missing = [path for path in files if path in copy.entries and scan.find(path) is None]
    with copy.db.step():
        for path in {*torn, *missing}:
            copy.forget(path)
    for path in torn:
        copy.files.remove(path)
    copy.files.forget()
    return {
        path: stat
        for path, file in files.items()
        if (stat := scan.find(path)) is not None and stat.digest == file.digest
    }


def _torn_files(copy: WorkingCopy, files: Mapping[str, SealedFile], scan: Scan) -> list[str]:
    """The paths of files that contain only the beginning of their sealed bytes."""
    short = {}
    for path, file in files.items():
        stat = scan.find(path)
        if stat is not None and stat.size < file.size and stat.digest != file.digest:
            short[path] = stat
    torn = [path for path, stat in short.items() if not stat.size]
    inside: dict[bytes, list[str]] = {}
    for path, stat in short.items():
        if stat.size and files[path].kind != "chunked":  # such a file comes to its place whole
            inside.setdefault(files[path].digest, []).append(path)
    sizes = {digest: files[paths[0]].size for digest, paths in inside.items()}
    for digest, data in copy.fetch(sizes, keep=False):
        for path in inside.get(digest, []):
            there = copy.files.read_up_to(path, short[path].size)
            if there is not None and data.startswith(there):
                torn.append(path)
    return torn
