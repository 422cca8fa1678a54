"""Finds the seal from which the files of a folder were edited, if the folder has no record
(docs/design/007)."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from localstore.core.errors import NotFound
from localstore.errors import LinkDamaged, NotLinked
from localstore.folder import link
from localstore.folder.scan_result import Scan
from localstore.record.database import SealedFile
from localstore.record.entry import known_by_bytes
from localstore.sync import verify
from localstore.sync.working_copy import RECORDED, SEALED_AT, WorkingCopy

SEALS_COMPARED = 30  # newest seals whose trees are held against the folder


class Recognised(msgspec.Struct):
    """The result of `recognise`. `base`: the seal that most files match, None if no seal matches any; `head`:
    the newest seal of the branch. `known`: how many files equal a sealed version of their path. `unknown`:
    the paths of all other files, which a pull keeps as conflict copies."""

    base: str | None
    head: str | None
    known: int
    unknown: list[str]


def recognise(copy: WorkingCopy) -> Recognised:
    """Begin a new record for a folder that already has files. Of the last SEALS_COMPARED seals, the one that
    most files match becomes the base: differences from it count as edits. If several seals match equally, the
    newest of them is used."""
    head = copy.transport.head()
    files = copy.scan().files
    best: tuple[int, str, dict[str, SealedFile]] | None = None
    history: dict[str, dict[bytes, SealedFile]] = {}
    for seal_id, tree in _trees(copy, head):
        for path, file in tree.items():
            history.setdefault(path, {})[file.digest] = file
        matches = sum(path in files and files[path].digest == file.digest for path, file in tree.items())
        if matches and (best is None or matches > best[0]):
            best = (matches, seal_id, tree)
    matched = {
        path: history[path][stat.digest]
        for path, stat in files.items()
        if stat.digest in history.get(path, {})
    }
    with copy.db.step():  # a death before its end is seen by the next command, which recognises again
        copy.start_over()
        for path, file in matched.items():
            copy.save(known_by_bytes(path, file.kind, file.digest, file.size))
    if best is not None:
        copy.record_seal(best[1], dict(best[2]), whole=True)
    unknown = [path for path in files if path in history and path not in matched]
    return Recognised(best[1] if best else None, head, len(matched), sorted(unknown))


def adopt_state_file(copy: WorkingCopy) -> None:
    """Use the seal in `state.json` as the one from which the files were edited, after verifying it. Does
    nothing unless the record is new, as after the folder was copied with its link. Also does nothing if the
    repository does not have that seal."""
    named = _find_unrecorded_seal(copy)
    if named is None:
        if _is_new(copy):
            recognise(copy)  # linking the folder was interrupted
        return
    try:
        seal = copy.transport.seal(named)
    except NotFound:
        return
    payload = verify.seal(seal, named, copy.repo.repo_id)
    files = copy.read_tree(named, payload)
    # A file that is not here may never have been copied: it must not look deleted.
    present = copy.scan().files.keys() & files.keys()
    with copy.db.step():
        for path in present:
            file = files[path]
            copy.save(known_by_bytes(path, file.kind, file.digest, file.size))
    copy.record_seal(named, dict(files), whole=True)
    copy.db.put(SEALED_AT, payload.created_at)


def changes_since_last_seal(
    copy: WorkingCopy, scan: Scan
) -> tuple[str | None, list[str], list[str], list[str]]:
    """(last seal of the folder, changed paths, new paths, removed paths), with each list sorted. They come
    from the record, or from the file `.svc/state.json` if the record is new. `scan`: a scan that was just
    made."""
    if _find_unrecorded_seal(copy) is None:
        return copy.last_seal, *copy.db.changes_since_seal()
    state, files = link.read_state(copy.folder), scan.files
    changed = [
        path
        for path, hex_digest in state.tree.items()
        if path in files and files[path].digest.hex() != hex_digest
    ]
    new, removed = files.keys() - state.tree.keys(), state.tree.keys() - files.keys()
    return state.last_seal, sorted(changed), sorted(new), sorted(removed)


def repair_state_file(copy: WorkingCopy) -> None:
    """Write `state.json` again if it differs from the record. It may differ if a process was killed, or if
    somebody edited the file."""
    link.sweep(copy.folder)
    if copy.last_seal is not None and not copy.state.is_written():
        copy.state.rewrite()


def _find_unrecorded_seal(copy: WorkingCopy) -> str | None:
    """The folder's last seal according to `.svc/state.json`, if the record is new; else None."""
    return _seal_of_state_file(copy) if _is_new(copy) else None


def _is_new(copy: WorkingCopy) -> bool:
    """Whether the record is new: nothing of the folder was ever stored in it."""
    has_records = copy.db.number(RECORDED) or copy.last_seal is not None or copy.branch_id or copy.entries
    return not has_records


def _seal_of_state_file(copy: WorkingCopy) -> str | None:
    try:
        return link.read_last_seal(copy.folder)
    except (NotLinked, LinkDamaged):
        return None


def _trees(copy: WorkingCopy, head: str | None) -> Iterator[tuple[str, dict[str, SealedFile]]]:
    seal_id = head
    for _ in range(SEALS_COMPARED):
        if seal_id is None:
            return
        payload = verify.seal(copy.transport.seal(seal_id), seal_id, copy.repo.repo_id)
        yield seal_id, verify.files(copy.transport, seal_id, payload)
        seal_id = payload.parents[0] if payload.parents else None
