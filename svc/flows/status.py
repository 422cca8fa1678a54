"""`svc repo status`: what differs between the folder, its last seal and the branch."""

from __future__ import annotations

from dataclasses import dataclass, field

from localstore.core.errors import ServerUnreachable
from localstore.scanner import Skipped
from localstore.sync.device import Device
from localstore.sync.recognise import last_known
from svc.flows.working import unwritable


@dataclass
class Status:
    """Paths by what a push would do with them. `head` is the branch's, None if it has none or is not known;
    `behind` says that the branch has a seal that this folder lacks. `unsent`: updates without an answer."""

    repo: str
    branch: str
    last_seal: str | None
    head: str | None = None
    behind: bool = False
    offline: bool = False
    changed: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    ignored: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    unsent: int = 0


def status(device: Device, offline: bool = False) -> Status:
    """Reads only, besides the stat cache. An unreachable server counts as offline."""
    scan = device.look_around()
    last, sealed = last_known(device)
    result = Status(
        repo=device.repo.repo,
        branch=device.repo.branch,
        last_seal=last,
        ignored=scan.ignored,
        skipped=scan.skipped + unwritable(device),
        unsent=len(device.db.flight_kinds()),
    )
    recorded = device.db.unwritable()
    for path, stat in sorted(scan.files.items()):
        if path not in sealed:
            result.new.append(path)
        elif sealed[path] != stat.digest:
            result.changed.append(path)
    result.removed = sorted(
        path for path in sealed if path not in scan.files and path not in recorded and not scan.unknown(path)
    )
    _ask(device, result, offline)
    return result


def _ask(device: Device, result: Status, offline: bool) -> None:
    try:
        if offline:
            raise ServerUnreachable
        result.head = device.transport.head()
    except ServerUnreachable:
        result.offline = True
        return
    result.behind = result.head != result.last_seal
