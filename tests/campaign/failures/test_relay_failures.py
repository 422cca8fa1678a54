"""A relay whose disk is full refuses, keeps what it acknowledged, and goes on when there is room again."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import buckets
from tests.campaign.conftest import Place
from tests.campaign.world import Node


def no_file_above(limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


@pytest.mark.skipif(buckets.EVERYWHERE, reason="in a bucket the packs need no room of the relay's disk")
@pytest.mark.parametrize("room", [1_200_000])
def test_a_relay_without_room_refuses_and_loses_nothing(room: int, tmp_path: Path) -> None:
    node = Node(tmp_path)
    try:
        place = Place(tmp_path, node, "ann")
        place.write(place.ann, "a.txt", "one\n")
        place.ann.ok("push", "-m", "first")
        node.kill()
        node.start(no_file_above(room))
        sealed = 1
        for number in range(12):
            place.write(place.ann, f"{number}.bin", b"\0" + os.urandom(500_000))
            place.write(place.ann, "a.txt", f"one\n{number}\n" * 200)
            done = place.ann.run("push", "-m", f"number {number}")
            if done.code:
                break
            sealed += 1
        assert done.code == 1, "the disk never was full"
        assert "Internal" not in done.err
        assert done.err.count("svc: ") == 1
        node.kill()
        node.start()
        place.ann.ok("push", "-m", "there is room again")
        bob = place.machine("bob")
        assert bob.files() == place.ann.files()
        assert "Traceback" not in node.log.read_text()
    finally:
        node.close()
