"""`svc switch`: the same folder on another branch."""

from __future__ import annotations

from pathlib import Path

import msgspec

from localstore import link
from localstore.core.errors import LocalEdits
from localstore.core.names import ref_name
from localstore.sync.device import Device
from localstore.sync.transport import Transport
from svc.flows.pull import Mode, Pulled, pull
from svc.flows.working import dirty


class Switched(msgspec.Struct):
    """`pulled`: what the new branch brought. `trash`: where --force put edited files."""

    branch: str
    pulled: Pulled
    trash: Path | None


def switch(device: Device, branch: str, transport: Transport, mode: Mode = "plain") -> Switched:
    """Move to `branch`, which `transport` is bound to. LocalEdits over edits in mode plain; `merge` carries
    them onto the new branch, `force` moves them to the trash.

    The device is brought up to date with its old branch first, so that every edit is known as one.
    """
    ref_name(branch)
    transport.head()  # NotFound before anything happens
    if mode == "plain":
        edited = dirty(device, device.look_around())
        if edited:
            raise LocalEdits(edited, f"switch {branch}")
    before = pull(device, "force" if mode == "force" else "merge")
    device.detach()
    device.repo = msgspec.structs.replace(device.repo, branch=branch)
    link.write_repo(device.folder, device.repo)
    device.turn_to(transport)
    pulled = pull(device, "merge")
    return Switched(branch, pulled, before.trash)
