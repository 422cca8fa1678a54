"""Leaves the live frontier: the user of a folder could write, and may only read from now on.

The role was lowered, the repository archived, or a session ended. The folder may have edits, its own and
those of others, that are on the frontier and in no seal. They count as edits of the last seal from then on,
so that reading seals does not take them back."""

from __future__ import annotations

from localstore.record.database import STALE_EPOCH, FrontierRow, SealedFile
from localstore.record.entry import PathRecord, known_by_bytes
from localstore.sync.open_merge import KEY as OPEN_MERGE
from localstore.sync.reconcile import is_gone
from localstore.sync.sealing import lacking_paths
from localstore.sync.working_copy import PART_SEEN, SEALED_AT, WorkingCopy


def leave_frontier(copy: WorkingCopy) -> None:
    """Forget the branch, but not the folder's last seal. Afterwards what the folder has beyond this seal
    counts as an edit. A path at which it is not known whether the folder's file is older or newer than the
    sealed one is forgotten, so that a pull keeps both."""
    last, sealed, rows = copy.last_seal, copy.db.read_sealed(), copy.db.rows()
    left_out, lacking, index = copy.db.unwritable(), lacking_paths(copy), copy.db.number("since")
    values = {key: copy.db.get(key) for key in (SEALED_AT, PART_SEEN, OPEN_MERGE, "repo_kind")}
    bases = []
    for path in {*copy.entries, *sealed} - left_out.keys():
        row, file = rows.get(path), sealed.get(path)
        base = _base(path, copy.entries.get(path), row, file, path in lacking, index)
        if base is not None:
            bases.append(base)
    with copy.db.step():
        copy.replace_records(bases)
        for key, value in values.items():
            copy.db.put(key, value)
        copy.record_seal(last, sealed, whole=True)


def _base(
    path: str,
    entry: PathRecord | None,
    row: FrontierRow | None,
    sealed: SealedFile | None,
    lacking: bool,
    index: int,
) -> PathRecord | None:
    """The record of the file from which the folder's file at a path was edited; None if there is none, or if
    it is unknown. `lacking`: the sealed version never was in the folder. `index`: the number of the frontier
    up to which `row` is known."""
    as_sealed = None if sealed is None else known_by_bytes(path, *sealed)
    if entry is None:  # removed here and on the branch, or never brought
        return as_sealed if row is None and not lacking else None
    if sealed is not None and entry.shadow == sealed.digest and not entry.pending:
        return as_sealed
    before = None
    if entry.shadow is not None and not entry.pending:
        before = known_by_bytes(path, entry.kind, entry.shadow, entry.size)
    if lacking:
        return before
    if row is None:
        return before if sealed is None and is_gone(entry, index) else as_sealed
    if _is_seen(entry, row):
        return as_sealed
    return before if sealed is not None and row.digest == sealed.digest else None


def _is_seen(entry: PathRecord, row: FrontierRow) -> bool:
    """Whether the folder has everything of the row. The row may be older than what the folder sent."""
    if row.ver < entry.seen and not entry.foreign:
        return True
    return row.gen == entry.gen and row.epoch in (entry.epoch, STALE_EPOCH) and row.other <= entry.seen
