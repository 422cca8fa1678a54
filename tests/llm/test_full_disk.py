"""A disk without a free byte: what needs one is refused with words, and what frees some works."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.models import leases, server
from svc.flows.llm.talk import Server
from tests.llm import tiny
from tests.llm.conftest import alive
from tests.llm.small_disk import CAN_MOUNT, WHY, SmallDisk
from tests.llm.test_api import SENTENCE, asked
from tests.patience import until
from tests.svc.cmd.test_llm import Place

pytestmark = pytest.mark.skipif(not CAN_MOUNT, reason=WHY)
FULL = "No space left on device: "
REMEDY = "; free some space, then try again"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    small = SmallDisk(tmp_path / "disk", 8)
    yield small
    small.close()


@pytest.fixture
def place(tmp_path: Path, disk: SmallDisk) -> Iterator[Place]:
    """Its cache lies on the small disk, with the model tiny."""
    user = Place(tmp_path)
    user.llm = disk.folder / "cache"
    user.before = disk.words(user.folder)
    tiny.write(user.folder / "tiny.gguf")
    user.ok("pull", "tiny.gguf")
    yield user
    keeper = server.running(disk.seen / "cache" / str(user.port))
    user.run("stop")
    until(lambda: keeper is None or not alive(keeper.pid), "the keeper ended")


def test_a_server_whose_disk_gets_full_generates_and_says_what_it_cannot_do(
    place: Place, disk: SmallDisk
) -> None:
    place.ok("start")
    disk.fill()
    assert place.ok("run", "tiny", "Hi") == f"{SENTENCE}\n"
    code, _, err = place.run("cp", "tiny", "again")
    assert (code, FULL in err and REMEDY in err) == (1, True), err

    status, answer = asked(place, "POST", "/api/copy", {"source": "tiny", "destination": "again"})
    assert (status, FULL in answer["error"] and REMEDY in answer["error"]) == (507, True)
    status, text = asked(place, "POST", "/api/create", {"model": "again", "from": "tiny"})
    lines = [json.loads(line) for line in text.splitlines()]
    assert (status, FULL in lines[-1]["error"]) == (200, True), "an error in a stream is its last line"
    assert [model["name"] for model in Server(place.port).get("/api/tags")["models"]] == ["tiny:latest"]

    assert asked(place, "DELETE", "/api/delete", {"model": "tiny"})[0] == 200, "this is what frees space"
    assert shutil.disk_usage(disk.seen).free >= (place.folder / "tiny.gguf").stat().st_size


def test_models_are_removed_from_a_full_disk_and_a_server_says_that_it_cannot_start(
    place: Place, disk: SmallDisk
) -> None:
    disk.fill()
    for words in (["start"], ["run", "tiny", "Hi"]):
        code, _, err = place.run(*words)
        assert (code, "the server cannot write to" in err, "free some space" in err) == (1, True, True), err
    code, _, err = place.run("serve")
    assert (code != 0, FULL in err, "Traceback" in err) == (True, True, False), err
    assert place.status()["kind"] == "none"
    folder = disk.seen / "cache" / str(place.port)
    assert (leases.list_leases(folder), leases.stays(folder)) == ([], False)
    place.ok("rm", "tiny", "--yes")
    assert place.ok("list", "--json", "name").strip() == "[]"
    assert shutil.disk_usage(disk.seen).free >= (place.folder / "tiny.gguf").stat().st_size
