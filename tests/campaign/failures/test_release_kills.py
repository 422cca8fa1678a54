"""A relay or client that is killed in the transfer of an asset leaves nothing half; the next try does it."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from localstore.core.model.limits import MIB
from tests import buckets
from tests.campaign.conftest import Place
from tests.campaign.world import Node

SIZE = 60 * MIB


def stored(node: Node) -> int:
    """Bytes in the relay's packs."""
    return sum(path.stat().st_size for path in (node.base / "data").rglob("*") if path.suffix == ".pack")


def wait_until(grown: object) -> None:
    assert callable(grown)
    for _ in range(2000):
        if grown():
            return
        time.sleep(0.005)
    raise AssertionError("nothing arrived")


@pytest.mark.skipif(buckets.EVERYWHERE, reason="it looks at the packs on the disk")
def test_an_upload_that_is_killed_makes_no_asset_and_goes_on(tmp_path: Path) -> None:
    node = Node(tmp_path)
    try:
        place = Place(tmp_path, node, "ann")
        place.write(place.ann, "a.txt", "one\n")
        place.ann.ok("push", "-m", "first")
        place.ann.ok("repo", "release", "create", "v1")
        begun = stored(node)
        data = os.urandom(SIZE)
        (place.base / "app.bin").write_bytes(data)
        upload = ("repo", "release", "upload", "v1", str(place.base / "app.bin"))
        for who in ("relay", "client"):
            empty = stored(node)
            running = place.ann.begin(*upload)
            wait_until(lambda empty=empty: stored(node) > empty + 5 * MIB)
            if who == "relay":
                node.kill()
            running.kill()
            running.end()
            if who == "relay":
                node.start()
            assert place.ann.ok("repo", "release", "view", "v1", "--json", "assets").json()["assets"] == []
            assert node.rows("SELECT digest FROM chunked_file") == []
        place.ann.ok(*upload)
        assert stored(node) - begun < SIZE + 9 * MIB  # at most a pack of 4 MiB was sent twice, for each kill
        download = ("repo", "release", "download", "v1", "-D", str(place.base / "got"))
        running = place.ann.begin(*download)
        got = place.base / "got"
        wait_until(lambda: any(path.stat().st_size > 2 * MIB for path in got.glob(".svc-*.tmp")))
        running.kill()
        running.end()
        assert not (got / "app.bin").exists()
        place.ann.ok(*download)
        assert (got / "app.bin").read_bytes() == data
        assert [path.name for path in got.iterdir()] == ["app.bin"]
        assert "Traceback" not in node.log.read_text()
    finally:
        node.close()
