"""`svc pull`: bring the branch's live frontier into the folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from localstore.core.errors import LocalEdits
from localstore.core.names import MANIFEST
from localstore.found import Skipped
from localstore.sync.capture import capture
from localstore.sync.chunked_download import clear
from localstore.sync.compose import edited
from localstore.sync.device import Device
from localstore.sync.reconcile import reconcile
from localstore.sync.remote import authors
from localstore.sync.send import send
from localstore.sync.trash import move_to_trash
from svc.flows.executable import mark
from svc.flows.working import begin, dirty, unwritable, verified_head

Mode = Literal["plain", "merge", "force"]


class Pulled(msgspec.Struct):
    """`seal`: the head that the folder now has. `changed`: paths written or removed. `live`: paths that hold
    edits by others that nobody has sealed yet, each with their handles. `conflicts`: (path, name of the copy
    that kept my version). `trash`: where --force put edited files."""

    seal: str | None
    changed: list[str] = msgspec.field(default_factory=list)
    live: dict[str, list[str]] = msgspec.field(default_factory=dict)
    conflicts: list[tuple[str, str]] = msgspec.field(default_factory=list)
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    trash: Path | None = None
    dry_run: bool = False


def pull(device: Device, mode: Mode = "plain", dry_run: bool = False) -> Pulled:
    """Recover, resolve what is in flight, capture, reconcile. LocalEdits in mode plain if edits are in the
    way; `merge` joins them, `force` moves them to the trash."""
    head = begin(device)
    if dry_run:
        return _foreseen(device, head)
    if device.db.flight_kinds():
        send(device)
        head = begin(device)  # the rows of before do not know what was just accepted
    scan = device.look_around()
    if mode == "plain":
        in_the_way = dirty(device, scan)
        if in_the_way:
            raise LocalEdits(in_the_way)
    new = verified_head(device, head)
    trash = _discard(device, dirty(device, scan)) if mode == "force" else None
    capture(device, edited(device, device.db.moved(), scan), scan)
    changed = reconcile(device, scan)
    clear(device)
    mark(device, device.entries.keys() if MANIFEST in changed else changed)
    if new is not None:
        device.sealed_as(head, new.changes, whole=new.whole, tree=new.tree)
    return Pulled(
        seal=head,
        changed=sorted(changed),
        live=_live(device),
        conflicts=list(device.conflicts),
        skipped=scan.skipped + unwritable(device),
        trash=trash,
    )


def _discard(device: Device, given_up: list[str]) -> Path | None:
    """Forget edited files and move them to the trash, so that the branch's version is written. In this
    order, a death between the two never looks like a delete."""
    with device.db.step():
        for path in given_up:
            device.forget(path)
    return move_to_trash(device, given_up)


def _live(device: Device) -> dict[str, list[str]]:
    sealed = device.db.sealed()
    rows = device.db.rows()
    found = {path for path, row in rows.items() if path not in sealed or sealed[path].digest != row.digest}
    who = authors(device)
    return {path: who.get(path, []) for path in sorted(found) if rows[path].other}


def _foreseen(device: Device, head: str | None) -> Pulled:
    """What a pull would change, by the rows alone."""
    rows = device.db.rows()
    changed = [
        path
        for path, row in rows.items()
        if path not in device.entries or device.entries[path].want != row.digest
    ]
    changed += [path for path, entry in device.entries.items() if path not in rows and entry.gen]
    return Pulled(seal=head, changed=sorted(changed), live=_live(device), dry_run=True)
