"""`svc repo status`: what differs between the folder, its last seal and the branch."""

from __future__ import annotations

import msgspec

from localstore.core.errors import ServerUnreachable
from localstore.found import Scan, Skipped
from localstore.sync.compose import Caps
from localstore.sync.device import Device
from localstore.sync.recognise import against_last
from svc.flows.left_out import LeftOut, ignored, tracked_by_git, tracked_once, unportable
from svc.flows.meanwhile import Meanwhile
from svc.flows.working import read_caps, unwritable

WAIT_SECONDS = 3.0  # for a server, once everything else is known


class Status(msgspec.Struct):
    """Paths by what a push would do with them. `head` is the branch's, None if it has none or is not known;
    `behind` says that the branch has a seal that this folder lacks. `unsent`: updates without an answer.
    `left_out`: what rules leave out, if that was asked for; `tracked` of it by git, and `warnings` of names,
    are said once."""

    repo: str
    branch: str
    last_seal: str | None
    head: str | None = None
    behind: bool = False
    offline: bool = False
    changed: list[str] = msgspec.field(default_factory=list)
    new: list[str] = msgspec.field(default_factory=list)
    removed: list[str] = msgspec.field(default_factory=list)
    ignored: int = 0
    skipped: list[Skipped] = msgspec.field(default_factory=list)
    unsent: int = 0
    left_out: list[LeftOut] = msgspec.field(default_factory=list)
    tracked: list[LeftOut] = msgspec.field(default_factory=list)
    warnings: list[str] = msgspec.field(default_factory=list)


def status(device: Device, offline: bool = False, show_ignored: bool = False) -> Status:
    """Reads only, besides the stat cache. The server is asked meanwhile; one that cannot be reached, or has
    not answered WAIT_SECONDS after the look, counts as offline."""
    head = None if offline else Meanwhile(device.transport.head)
    scan = device.look_around(lean=True)
    last, changed, new, removed = against_last(device, scan)
    recorded = device.db.unwritable()
    result = Status(
        repo=device.repo.repo,
        branch=device.repo.branch,
        last_seal=last,
        changed=changed,
        new=new,
        removed=[path for path in removed if path not in recorded and not scan.unknown(path)],
        ignored=scan.ignored,
        skipped=scan.skipped + unwritable(device),
        unsent=len(device.db.flight_kinds()),
    )
    _leave_out(device, scan, result)
    result.left_out = list(ignored(device)) if show_ignored else []
    result.tracked = tracked_by_git(device) if show_ignored else tracked_once(device)
    if result.new:
        result.warnings = unportable(device, result.new, scan.files)
    _compare(head, result)
    return result


def _leave_out(device: Device, scan: Scan, result: Status) -> None:
    """Byte files over a cap would not be sent: they are skipped, not changed or new."""
    read_caps(device)
    caps = Caps(device, scan)
    for path in sorted({*result.changed, *result.new}):
        stat = scan.find(path)
        over = caps.over(path, stat) if stat and stat.kind == "blob" else None
        if over is not None:
            result.skipped.append(over)
            for paths in (result.changed, result.new):
                if path in paths:
                    paths.remove(path)


def _compare(head: Meanwhile[str | None] | None, result: Status) -> None:
    try:
        if head is None:
            raise ServerUnreachable
        result.head = head.answer(WAIT_SECONDS)
    except ServerUnreachable:
        result.offline = True
        return
    result.behind = result.head != result.last_seal
