"""`svc pull`: bring the branch's live frontier into the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.names import MANIFEST
from localstore.errors import BranchReplaced, LocalEdits
from localstore.folder.scan_result import Skipped
from localstore.sync.capture import capture
from localstore.sync.compose import edited
from localstore.sync.dry_run import dry_run_copy
from localstore.sync.reconcile import reconcile
from localstore.sync.remote import unsealed_authors
from localstore.sync.transfer.chunked_download import clear
from localstore.sync.transfer.send import send
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import (
    ConflictCopy,
    begin,
    changed_since_last_seal,
    conflict_copies,
    edits_in_the_way,
    merged_with,
    unwritable,
    verified_head,
)
from svc.flows.executable import mark, marking

Mode = Literal["plain", "merge", "force"]


class Pulled(msgspec.Struct):
    """`seal`: the head that the folder now has. `changed`: paths written or removed. `live`: paths that hold
    edits by others that nobody has sealed yet, each with their handles. `merged`: paths of mine that were
    merged with edits by others, each with a handle if one is known. `trash`: where --force put edited files,
    which are `given_up`. `replaced`: the folder's branch was made again, and the folder is on the new one
    now."""

    seal: str | None
    changed: list[str] = msgspec.field(default_factory=list)
    live: dict[str, list[str]] = msgspec.field(default_factory=dict)
    merged: dict[str, str | None] = msgspec.field(default_factory=dict)
    conflicts: list[ConflictCopy] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    trash: Path | None = None
    given_up: list[str] = msgspec.field(default_factory=list)
    dry_run: bool = False
    replaced: bool = False


def pull(copy: WorkingCopy, mode: Mode = "plain", dry_run: bool = False) -> Pulled:
    """Recover, resolve what is in flight, capture, reconcile. LocalEdits in mode plain if edits are in the
    way; `merge` joins them, `force` moves them to the trash. With `dry_run` all of this is only rehearsed:
    the same result, and the same errors, with nothing done."""
    if dry_run:
        with dry_run_copy(copy) as rehearsed:
            found = pull(rehearsed, mode)
        return msgspec.structs.replace(found, dry_run=True, trash=None)
    head, replaced = _begin(copy, mode)
    if copy.db.flight_kinds():
        send(copy)
        head = begin(copy)  # the rows of before do not know what was just accepted
    scan = copy.scan()
    if mode == "plain":
        in_the_way = edits_in_the_way(copy, scan)
        if in_the_way:
            raise LocalEdits(in_the_way)
    new = verified_head(copy, head)
    given_up = edits_in_the_way(copy, scan) if mode == "force" else []
    trash = discard(copy, given_up)
    capture(copy, edited(copy, copy.db.may_need_update(), scan), scan)
    with marking(copy, new is not None):
        changed = reconcile(copy, scan)
        clear(copy)
        mark(copy, copy.entries.keys() if MANIFEST in changed else changed)
    if new is not None:
        copy.record_seal(head, new.changes, whole=new.whole, tree=new.tree)
    return Pulled(
        seal=head,
        changed=sorted(changed),
        live=_live(copy),
        merged=merged_with(copy),
        conflicts=conflict_copies(copy),
        skipped=scan.skipped + unwritable(copy),
        trash=trash,
        given_up=given_up,
        replaced=replaced,
    )


def _begin(copy: WorkingCopy, mode: Mode) -> tuple[str | None, bool]:
    """The head, and whether the branch is another one than before. What this folder has beyond its last seal
    then is in the way of a plain pull, also what was sent: the old branch took it along."""
    try:
        return begin(copy), False
    except BranchReplaced:
        if mode == "plain" and changed_since_last_seal(copy, copy.scan()):
            raise
        copy.fall_back_to_last_seal()
        return begin(copy), True


def discard(copy: WorkingCopy, given_up: list[str]) -> Path | None:
    """Forget edited files and move them to the trash, so that the branch's version is written. In this
    order, a death between the two never looks like a delete."""
    with copy.db.step():
        for path in given_up:
            copy.forget(path)
    return move_to_trash(copy, given_up)


def _live(copy: WorkingCopy) -> dict[str, list[str]]:
    sealed = copy.db.sealed()
    rows = copy.db.rows()
    found = {path for path, row in rows.items() if path not in sealed or sealed[path].digest != row.digest}
    who = unsealed_authors(copy)
    return {path: who.get(path, []) for path in sorted(found) if rows[path].other}
