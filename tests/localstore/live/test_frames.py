"""Updates of others are applied only as they were signed."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from localstore.core.encoding import b64u
from localstore.core.errors import ServerMisbehaved
from localstore.core.identity.keys import DeviceKey
from localstore.core.lane.update import LiveUpdate, signing_bytes
from localstore.core.model.sync import Signed
from localstore.live.frames import require_signed
from localstore.sync.working_copy import WorkingCopy
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

KEY, OTHER = DeviceKey.generate(b"k" * 32), DeviceKey.generate(b"o" * 32)
UPDATE = LiveUpdate(
    n=1, settled=0, path="a.txt", kind="edit_text", gen=1, base=1, signature="", epoch=0, ops=["AA"]
)


def signed(copy: WorkingCopy, repo_id: str, key: DeviceKey = KEY) -> Signed:
    message = signing_bytes(repo_id, copy.branch_id, 7, key.id, UPDATE)
    update = replace(UPDATE, signature=b64u(key.sign(message)))
    return Signed(2, 7, key.id, b64u(key.public), update, "bob")


def test_only_what_its_author_signed_for_this_branch_is_taken(tmp_path: Path) -> None:
    place = Place(tmp_path, ModelRelay(), "ann")
    place.write("a.txt", "a\n")
    place.push("One")
    with place.device() as copy:
        good = signed(copy, copy.repo.repo_id)
        require_signed(copy.repo.repo_id, copy.branch_id, good)
        for bad in (
            signed(copy, "another repository"),
            replace(good, replica=8),
            replace(good, public_key=b64u(OTHER.public)),
            replace(good, device_key_id=OTHER.id, public_key=b64u(OTHER.public)),
            replace(good, public_key="AA"),
            replace(good, update=replace(good.update, path="b.txt")),
            replace(good, update=replace(good.update, ops=["AQ"])),
            replace(good, update=replace(good.update, n=2)),
            replace(good, update=replace(good.update, signature="")),
        ):
            with pytest.raises(ServerMisbehaved):
                require_signed(copy.repo.repo_id, copy.branch_id, bad)
