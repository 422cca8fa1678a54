"""`svc llm pull` of a registry, in processes: killed, full, lied to, and two at once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.models.names import parse
from localstore.models.store import Models
from tests.llm import tiny
from tests.llm.small_disk import CAN_MOUNT, WHY, SmallDisk
from tests.patience import until
from tests.svc.cmd.test_llm import SENTENCE, Place
from tests.svc.flows.models.test_registry import Registry

NAME = "hf.co/alice/tiny-GGUF:Q8_0"
MANIFEST = "/v2/alice/tiny-GGUF/manifests/Q8_0"
DATA = tiny.model(layers=2, seed=1)
HALF = len(DATA) // 2
READ_AHEAD = 1 << 20  # bytes that may be on their way when a process ends


@pytest.fixture
def hub() -> Iterator[Registry]:
    """A registry that has the model, and waits in the middle of its file."""
    registry = Registry()
    registry.put(MANIFEST, registry.blob(DATA, "model"))
    registry.pause_at = HALF
    threading.Thread(target=registry.serve_forever, args=(0.05,), daemon=True).start()
    yield registry
    registry.go_on.set()
    registry.shutdown()
    registry.server_close()


@pytest.fixture
def place(tmp_path: Path, hub: Registry) -> Iterator[Place]:
    user = Place(tmp_path)
    user.more = {"SVC_LLM_REGISTRIES": f"hf.co={hub.origin}"}
    yield user
    user.run("stop")


def pulled(place: Place) -> bytes:
    models = Models(place.llm)
    return models.blob(models.find(parse(NAME)).record.model).read_bytes()


def parts(cache: Path) -> int:
    """Bytes of files of pulls that have not ended."""
    return sum(file.stat().st_size for file in (cache / "models" / "pulls").glob("*.part"))


def starts(hub: Registry) -> list[int]:
    """Where each request for the file began."""
    ranges = [asked for path, asked in hub.asked if "/blobs/" in path]
    return [int(asked.removeprefix("bytes=").rstrip("-") or 0) for asked in ranges]


def test_a_killed_pull_goes_on_where_it_was_and_generates(place: Place, hub: Registry) -> None:
    puller = place.begin("pull", NAME)
    until(lambda: parts(place.llm) > HALF - READ_AHEAD, "half of the model is on the disk")
    puller.kill()
    puller.communicate()
    hub.go_on.set()
    assert place.ok("list", "--json", "name").strip() == "[]"
    place.ok("pull", NAME, home=1)
    first, second = starts(hub)
    assert (first, second > HALF - READ_AHEAD) == (0, True)
    assert pulled(place) == DATA
    assert place.ok("run", NAME, "Hi") == f"{SENTENCE}\n"


def test_two_pulls_share_one_download(place: Place, hub: Registry) -> None:
    pullers = [place.begin("pull", NAME, "--json", "name,size")]
    assert hub.paused.wait(60)
    pullers.append(place.begin("pull", NAME, "--json", "name,size", home=1))
    until(lambda: [path for path, _ in hub.asked].count(MANIFEST) == 2, "the second one has begun")
    hub.go_on.set()
    for puller in pullers:
        out, err = puller.communicate(timeout=120)
        assert (puller.returncode, json.loads(out)["size"]) == (0, len(DATA)), err
    assert starts(hub) == [0]


def test_a_pull_goes_on_for_one_that_was_killed_while_it_waited_for_it(place: Place, hub: Registry) -> None:
    killed = place.begin("pull", NAME)
    until(lambda: parts(place.llm) > HALF - READ_AHEAD, "half of the model is on the disk")
    waits = place.begin("pull", NAME, home=1)
    until(lambda: [path for path, _ in hub.asked].count(MANIFEST) == 2, "the second one has begun")
    hub.go_on.set()
    killed.kill()
    killed.communicate()
    _, err = waits.communicate(timeout=120)
    assert waits.returncode == 0, err
    assert pulled(place) == DATA


def test_a_wrong_byte_is_never_a_model_and_the_right_ones_come_afterwards(
    place: Place, hub: Registry
) -> None:
    (digest,) = hub.blobs
    wrong = bytearray(DATA)
    wrong[HALF] ^= 1
    hub.blobs[digest], hub.pause_at = bytes(wrong), 0
    code, _, err = place.run("pull", NAME)
    assert (code, "sent other bytes than" in err, "nothing of them was kept" in err) == (1, True, True), err
    assert place.ok("list", "--json", "name").strip() == "[]"
    assert (parts(place.llm), list((place.llm / "models" / "blobs").iterdir())) == (0, [])
    hub.blobs[digest] = DATA
    place.ok("pull", NAME)
    assert pulled(place) == DATA


@pytest.mark.skipif(not CAN_MOUNT, reason=WHY)
def test_a_disk_that_gets_full_in_a_pull_is_told_and_the_pull_goes_on_where_it_was(
    place: Place, hub: Registry, tmp_path: Path
) -> None:
    disk = SmallDisk(tmp_path / "disk", 16)
    try:
        place.llm, place.before = disk.folder / "cache", disk.words(place.folder)
        seen = disk.seen / "cache"
        puller = place.begin("pull", NAME)
        until(lambda: parts(seen) > HALF - READ_AHEAD, "half of the model is on the disk")
        disk.fill()
        hub.go_on.set()
        _, err = puller.communicate(timeout=120)
        assert (puller.returncode, "No space left on device" in err) == (1, True), err
        assert "pull again: it goes on where it was" in err
        kept = parts(seen)
        assert kept > HALF - READ_AHEAD
        code, _, err = place.run("pull", NAME)
        assert (code, "bytes more in" in err, "free some space" in err) == (1, True, True), err
        assert len(starts(hub)) == 1, "nothing is fetched while there is no room"
        disk.free()
        place.ok("pull", NAME)
        assert starts(hub) == [0, kept]
        models = Models(seen)
        assert models.blob(models.find(parse(NAME)).record.model).read_bytes() == DATA
    finally:
        disk.close()
