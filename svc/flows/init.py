"""`svc repo init`: link a folder to a repository, recognising which version of it the files are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localstore import link
from localstore.core.keys import DeviceKey
from localstore.db import SealedFile, Stat
from localstore.entry import Entry, foreign_lane
from localstore.home import Home
from localstore.link import RepoLink, SealedState
from localstore.sync import verify
from localstore.sync.device import Device, opened
from localstore.sync.transport import Transport

SEALS_COMPARED = 30  # newest seals whose trees are held against the folder


@dataclass
class Linked:
    """`base`: the seal the folder was recognised as, None if none. `recognised` files are versions that the
    branch has or had; `unknown` ones are kept beside the branch's when it is pulled."""

    folder: Path
    base: str | None
    head: str | None
    recognised: int
    unknown: list[str]


def init(
    transport: Transport, home: Home, repo: RepoLink, folder: Path, key: DeviceKey | None = None
) -> Linked:
    """Link `folder`. Nothing in it is changed; pull and push do the rest."""
    link.write_repo(folder, repo)
    link.write_state(folder, SealedState(last_seal=None, tree={}))
    with opened(folder, home, transport, key) as device:
        return recognise(device)


def recognise(device: Device) -> Linked:
    """Take as base the newest seal whose digests match most files; a file that differs from it is the version
    that its path once had, or not known."""
    head = device.transport.head()
    files = device.look_around().files
    best: tuple[int, str, dict[str, SealedFile]] | None = None
    history: dict[str, dict[bytes, SealedFile]] = {}
    for seal_id, tree in _trees(device, head):
        for path, file in tree.items():
            history.setdefault(path, {})[file.digest] = file
        matches = sum(path in files and files[path].digest == file.digest for path, file in tree.items())
        if matches and (best is None or matches > best[0]):
            best = (matches, seal_id, tree)
    known = {path: history[path][stat.digest] for path, stat in files.items() if _was(history, path, stat)}
    device.start_over()
    with device.db.step():
        for path, file in known.items():
            device.save(_foreign(path, file))
    if best is not None:
        device.sealed_as(best[1], dict(best[2]), whole=True)
    unknown = [path for path in files if path in history and path not in known]
    return Linked(device.folder, best[1] if best else None, head, len(known), sorted(unknown))


def _was(history: dict[str, dict[bytes, SealedFile]], path: str, stat: Stat) -> bool:
    return stat.digest in history.get(path, {})


def _trees(device: Device, head: str | None) -> Iterator[tuple[str, dict[str, SealedFile]]]:
    wanted = head
    for _ in range(SEALS_COMPARED):
        if wanted is None:
            return
        payload = verify.seal(device.transport.seal(wanted), wanted, device.repo.repo_id)
        yield wanted, verify.tree(device.transport.tree(wanted), payload)
        wanted = payload.parents[0] if payload.parents else None


def _foreign(path: str, file: SealedFile) -> Entry:
    return Entry(
        path=path,
        kind=file.kind,
        gen=foreign_lane(file.digest),
        genesis=file.digest if file.kind == "text" else None,
        want=file.digest,
        size=file.size,
        shadow=file.digest,
    )
