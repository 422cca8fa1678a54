"""What the flows of a working copy share: the way in, and what an edit in the way is."""

from __future__ import annotations

from localstore.core.chunks import file_cap
from localstore.core.names import MANIFEST
from localstore.core.paths import terminal_safe
from localstore.db import Row, SealedFile
from localstore.entry import foreign_lane
from localstore.found import Scan, Skipped
from localstore.sync import verify
from localstore.sync.device import Device
from localstore.sync.recognise import adopt_state, mend_state
from localstore.sync.reconcile import attach, follow
from localstore.sync.remote import connect
from localstore.sync.sealing import adopt_promised
from localstore.sync.settle import recover


def begin(device: Device) -> str | None:
    """Finish what was interrupted, bring the frontier up to date; the branch's sealed head."""
    recover(device)
    adopt_state(device)
    mend_state(device)
    if device.key is None:
        return _begin_reading(device)
    head, rows = connect(device)
    attach(device)
    follow(device, rows)
    adopt_promised(device, head)
    return head


def _begin_reading(device: Device) -> str | None:
    """Without a key the frontier is the head's tree, and lanes are known by their bytes."""
    head = device.transport.head()
    if head is not None and head != device.db.text("read_head"):
        payload = verify.seal(device.transport.seal(head), head, device.repo.repo_id)
        files = verify.tree(device.transport.tree(head), payload)
        with device.db.step():
            device.db.put_rows(_rows(files), (), whole=True)
            device.db.put("read_head", head)
    return head


def _rows(files: dict[str, SealedFile]) -> list[Row]:
    return [
        Row(path, file.kind, foreign_lane(file.digest), 0, 0, 0, file.digest, file.size, False)
        for path, file in files.items()
    ]


def verified_head(device: Device, head: str | None) -> dict[str, SealedFile]:
    """The head's tree, after every seal since the folder's last one was verified."""
    if head is None:
        return {}
    seals = verify.chain(device.transport, head, device.last, device.repo.repo_id)
    if not seals:
        return device.db.sealed()
    payload = verify.seal(seals[0], head, device.repo.repo_id)
    return verify.tree(device.transport.tree(head), payload)


def dirty(device: Device, scan: Scan) -> list[str]:
    """Tracked files with edits that are not confirmed, and new files where the branch has other ones."""
    flying = device.db.flight_kinds()
    rows = device.db.rows()
    found = []
    for path, entry in device.entries.items():
        if scan.unknown(path):
            continue
        stat = scan.files.get(path)
        if entry.pending or path in flying or (stat.digest if stat else None) != entry.shadow:
            found.append(path)
    for path, stat in scan.files.items():
        row = rows.get(path)
        if path not in device.entries and row is not None and row.digest != stat.digest:
            found.append(path)
    return sorted(found)


def read_caps(device: Device) -> str | None:
    """Take the cap of a file from the repository's kind and `.svc.yaml`; the kind that this names, if any."""
    if device.files.stat(MANIFEST) is None:
        device.file_cap = file_cap(device.repo_kind)
        return None
    from localstore.core.manifest import parse  # loads a YAML reader

    manifest = parse(device.files.read(MANIFEST))
    device.file_cap = manifest.file_cap(device.repo_kind or manifest.kind or "")
    return manifest.kind


def unwritable(device: Device) -> list[Skipped]:
    """Files of the branch that this folder cannot hold."""
    return [Skipped(terminal_safe(path), reason) for path, reason in device.db.unwritable().items()]
