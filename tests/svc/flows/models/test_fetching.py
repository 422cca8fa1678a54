"""Blobs that come: one download for all, room first, nothing wrong kept."""

from __future__ import annotations

import os
import re
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from blake3 import blake3

from localstore.core.errors import ServerMisbehaved
from localstore.core.times import rfc3339_now
from localstore.errors import DiskError
from localstore.models import pulls
from localstore.models.errors import BadModel, ModelMissing
from localstore.models.intake import take_in
from localstore.models.names import parse
from localstore.models.pulls import PullReport
from localstore.models.store import Models, Record
from svc.flows.models.fetching import Part, PullStep, fetch_parts, known_files
from tests.llm import tiny

DATA = tiny.model()
STEP = 1 << 16


def part(data: bytes = DATA, size: int | None = None, source: bytes | None = None) -> Part:
    """A blob that says it is `data` and comes from `source`; what is there already is kept."""
    given = data if source is None else source

    def write(fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
        start = os.fstat(fd).st_size
        came.append(len(given) - start)
        seen(os.pread(fd, start, 0))
        for at in range(start, len(given), STEP):
            os.pwrite(fd, given[at : at + STEP], at)
            seen(given[at : at + STEP])
            report(at, len(given))

    return Part(f"blake3:{blake3(data).hexdigest()}", size or len(data), "alice/x/tiny.gguf", write)


came: list[int] = []


@pytest.fixture
def models(tmp_path: Path) -> Models:
    came.clear()
    return Models(tmp_path / "llm")


def told(step: PullStep) -> None:
    """Nobody reads it."""


def test_a_blob_comes_once_and_its_progress_rises(models: Models) -> None:
    steps: list[PullStep] = []
    (digest,) = fetch_parts(models, [part()], steps.append)
    assert models.blob(digest).read_bytes() == DATA
    assert [one.completed for one in steps] == sorted(one.completed for one in steps)
    assert (steps[0].completed, steps[-1].completed, steps[-1].total) == (0, len(DATA), len(DATA))
    assert fetch_parts(models, [part()], told) == [digest]
    assert came == [len(DATA)]


def test_wrong_bytes_are_never_a_model_and_not_kept(models: Models) -> None:
    wrong = bytearray(DATA)
    wrong[-1] ^= 1
    with pytest.raises(ServerMisbehaved, match=r"sent other bytes than alice/x/tiny.gguf has"):
        fetch_parts(models, [part(source=bytes(wrong))], told)
    with pytest.raises(ServerMisbehaved):
        fetch_parts(models, [part(source=DATA[:-1])], told)
    with pytest.raises(BadModel, match="not a GGUF file"):
        fetch_parts(models, [part(data=b"no model")], told)
    assert list(models.blobs.iterdir()) == []
    assert list((models.root / "pulls").glob("*.part")) == []
    fetch_parts(models, [part()], told)


def test_what_is_read_to_find_chunks_is_told_and_bounded(models: Models, tmp_path: Path) -> None:
    digests = {}
    for number in range(5):
        file = tiny.write(tmp_path / f"model-{number}.gguf", seed=number)
        taken = take_in(models, file)
        digests[taken.digest] = taken.about.size
    size = min(digests.values())
    notes: list[str] = []
    known = list(known_files(models, size, notes.append))
    assert len(notes) == len(known)
    assert re.fullmatch(r"reading model-\d.gguf, [0-9,]+ bytes, for what need not be fetched", notes[0])
    assert 0 < len(known) <= 2, "they are as large as the file itself"
    for one in known:
        fd = one.open()
        list(one.chunks(fd))
        os.close(fd)
    notes.clear()
    assert len(list(known_files(models, size, notes.append))) == 2 * len(known)
    assert len(notes) == len(known), "those with a list are not read again"


def test_a_blob_that_a_pull_needs_stays_when_another_name_of_it_is_removed(models: Models) -> None:
    (digest,) = fetch_parts(models, [part()], told)
    models.put(parse("first"), Record(model=digest, modified_at=rfc3339_now()))
    with models.reserve([part().key]):
        assert fetch_parts(models, [part()], told) == [digest]
        assert models.remove(parse("first"))[1] == 0
        assert (
            models.put(parse("second"), Record(model=digest, modified_at=rfc3339_now())).record.model
            == digest
        )
    assert list((models.root / "reserved").iterdir()) == []
    assert models.remove(parse("second"))[1] == len(DATA)
    with pytest.raises(ModelMissing):
        models.put(parse("third"), Record(model=digest, modified_at=rfc3339_now()))
    assert models.all() == []


def test_a_reservation_ends_with_its_process(models: Models) -> None:
    (digest,) = fetch_parts(models, [part()], told)
    models.put(parse("first"), Record(model=digest, modified_at=rfc3339_now()))
    code = (
        "import os, signal, sys; from pathlib import Path; from localstore.models.store import Models\n"
        "with Models(Path(sys.argv[1])).reserve([sys.argv[2]]): os.kill(os.getpid(), signal.SIGKILL)"
    )
    words = [sys.executable, "-c", code, str(models.root.parent), f"sha256-{digest}"]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    assert len(list((models.root / "reserved").iterdir())) == 1
    assert models.remove(parse("first"))[1] == len(DATA)
    assert list((models.root / "reserved").iterdir()) == []


def test_room_is_looked_for_before_anything_comes(models: Models) -> None:
    with pytest.raises(
        DiskError, match=r"needs [\d,]+ bytes more in .*, and [\d,]+ are free; free some space"
    ):
        fetch_parts(models, [part(size=1 << 60)], told)
    assert came == []


def test_a_disk_that_becomes_full_keeps_what_came(models: Models) -> None:
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, room[1]))
    try:
        with pytest.raises(DiskError, match="it goes on where it was"):
            fetch_parts(models, [part()], told)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    fetch_parts(models, [part()], told)
    assert came[1] <= len(DATA) - 900_000


def test_two_pulls_share_one_download_and_both_see_it(models: Models) -> None:
    begun, go = threading.Event(), threading.Event()
    steps: list[PullStep] = []

    def slow(fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
        report(len(DATA) // 2, len(DATA))
        begun.set()
        go.wait(60)
        part().write(fd, seen, report)

    first = threading.Thread(target=fetch_parts, args=(models, [part()._replace(write=slow)], told))
    first.start()
    begun.wait(60)

    def seen_half(step: PullStep) -> None:
        steps.append(step)
        if step.completed == len(DATA) // 2:
            go.set()

    (digest,) = fetch_parts(models, [part()], seen_half)
    first.join()
    assert models.blob(digest).read_bytes() == DATA
    assert came == [len(DATA)]


def test_others_see_which_model_comes_and_how_far_it_is(models: Models) -> None:
    begun, go = threading.Event(), threading.Event()

    def slow(fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
        report(len(DATA) // 2, len(DATA), len(DATA) // 4)
        begun.set()
        go.wait(60)
        part().write(fd, seen, report)

    assert pulls.under_way(models) == []
    going = threading.Thread(
        target=fetch_parts, args=(models, [part()._replace(write=slow)], told, "alice/x")
    )
    going.start()
    begun.wait(60)
    (download,) = pulls.under_way(models)
    assert download.pid == os.getpid()
    assert download.progress == pulls.PullProgress(len(DATA) // 2, len(DATA), "alice/x", len(DATA) // 4)
    steps: list[PullStep] = []

    def go_on(step: PullStep) -> None:
        steps.append(step)
        if step.known:
            go.set()

    fetch_parts(models, [part()], go_on)  # waits for the other
    assert len(DATA) // 4 in {step.known for step in steps}
    go.set()
    going.join()
    assert pulls.under_way(models) == []


def test_a_puller_that_was_killed_is_replaced(models: Models) -> None:
    def dies(fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
        os.write(fd, DATA[: len(DATA) // 2])
        os.kill(os.getpid(), 9)

    child = os.fork()
    if child == 0:
        fetch_parts(models, [part()._replace(write=dies)], told)
    os.waitpid(child, 0)
    fetch_parts(models, [part()], told)
    assert came == [len(DATA) - len(DATA) // 2]


def test_what_was_left_long_ago_is_removed(models: Models, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError):
        fetch_parts(models, [part()._replace(write=fail)], told)
    assert len(list((models.root / "pulls").iterdir())) == 3
    pulls.drop_old(models)
    assert len(list((models.root / "pulls").iterdir())) == 3
    monkeypatch.setattr(pulls, "LEFT_SECONDS", -1.0)
    pulls.drop_old(models, {part().key})  # a pull that goes on with it
    assert len(list((models.root / "pulls").iterdir())) == 3
    pulls.drop_old(models)
    assert list((models.root / "pulls").iterdir()) == []


def fail(fd: int, seen: Callable[[bytes], object], report: PullReport) -> None:
    report(1, 2)
    raise RuntimeError
