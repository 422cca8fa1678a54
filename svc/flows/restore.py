"""`svc restore`: put files back as a seal has them. What they held goes to the trash first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from localstore.core.errors import NotFound, ServerMisbehaved
from localstore.core.paths import is_inside
from localstore.db import SealedFile
from localstore.files import Content
from localstore.sync import verify
from localstore.sync.chunked_download import clear, download
from localstore.sync.device import Device
from localstore.sync.settle import recover, replace
from svc.flows.executable import mark


class Restored(msgspec.Struct):
    """`trash`: where the replaced contents are, None if nothing was replaced."""

    paths: list[str] = msgspec.field(default_factory=list)
    trash: Path | None = None


def restore(device: Device, paths: Sequence[str], seal: str | None = None) -> Restored:
    """Restore files, or all below directories, from `seal` or the folder's last one. To the branch this is an
    edit like any other. NotFound for a path that the seal does not have."""
    recover(device)
    tree = _tree(device, seal)
    chosen = {
        path: file for path, file in tree.items() if any(is_inside(path, one.rstrip("/")) for one in paths)
    }
    for one in paths:
        if not any(is_inside(path, one.rstrip("/")) for path in chosen):
            raise NotFound(f"{one} is not in this seal; see: svc repo status")
    differing = {path: file for path, file in chosen.items() if device.seen(path) != file.digest}
    trash = None
    for path, content in _contents(device, differing):
        trash = replace(device, path, differing[path].digest, content, trash)
    device.files.forget()
    mark(device, differing)
    clear(device)
    return Restored(sorted(differing), trash)


def _tree(device: Device, seal: str | None) -> dict[str, SealedFile]:
    if seal is None or seal == device.last:
        return device.db.sealed()
    payload = verify.seal(device.transport.seal(seal), seal, device.repo.repo_id)
    return verify.tree(device.transport.tree(seal), payload)


def _contents(device: Device, files: dict[str, SealedFile]) -> Iterator[tuple[str, Content]]:
    for path, file in files.items():
        if file.kind == "chunked":
            yield path, download(device, file.digest, file.size, near=path)
            continue
        data = device.objects.get(file.digest)
        if data is None:
            fetched = dict(device.fetch({file.digest: file.size}, keep=file.kind == "text"))
            data = fetched.get(file.digest)
        if data is None:
            raise ServerMisbehaved(f"the server did not send {path}; try again")
        yield path, data
