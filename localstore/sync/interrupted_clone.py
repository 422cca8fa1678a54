"""A clone that was interrupted: which files of the folder it wrote, so that they are taken for what they are.

The record names the seal that is being cloned (`CLONING`) before the first file is written. A file with the
bytes that this seal has at its path is the clone's; so is one that holds the beginning of these bytes: the
write of it was cut short. Everything else is somebody's.
"""

from __future__ import annotations

from collections.abc import Mapping

from localstore.core.errors import NotFound
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import Stat
from localstore.record.database import SealedFile
from localstore.record.entry import known_by_bytes
from localstore.sync import verify
from localstore.sync.recognise import recognise
from localstore.sync.working_copy import WorkingCopy

CLONING = "cloning"  # the seal that a clone writes, kept until all of it is here


def resume_clone(copy: WorkingCopy) -> None:
    """Make the beginning of a clone an ordinary working copy at the seal that it was cloned from: a pull then
    brings what is missing, and removes or replaces what the branch changed since. Nothing happens anywhere
    else."""
    begun = copy.db.text(CLONING)
    if begun is None or copy.last_seal is not None:
        return
    try:
        seal = copy.transport.seal(begun)
        tree = copy.transport.tree(begun)
    except NotFound:  # the branch was deleted, or made again
        recognise(copy)
        return
    files = verify.tree(tree, verify.seal(seal, begun, copy.repo.repo_id))
    here = files_written(copy, files)
    with copy.db.step():
        for path in here:
            if path not in copy.entries:
                kind, digest, size = files[path]
                copy.save(known_by_bytes(path, kind, digest, size))
    copy.record_seal(begun, dict(files), whole=True)


def files_written(copy: WorkingCopy, files: Mapping[str, SealedFile]) -> dict[str, Stat]:
    """The files that an interrupted clone wrote whole, as they are now. Those whose write was cut short are
    removed, and what is missing is forgotten: to nobody it is a delete."""
    scan = copy.scan()
    torn = _torn(copy, files, scan)
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


def _torn(copy: WorkingCopy, files: Mapping[str, SealedFile], scan: Scan) -> list[str]:
    """Files that are shorter than they should be and hold the beginning of what they should hold."""
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
