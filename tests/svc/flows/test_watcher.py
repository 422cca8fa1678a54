"""Watchers in processes of their own, started, found and ended."""

from __future__ import annotations

import fcntl
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from localstore.errors import NotWatchable
from localstore.folder.lock import hold_lock
from localstore.watch import protocol
from localstore.watch.server import LOCK_NAME, LOG_NAME
from svc.flows.watcher import running_watchers, start, stop
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.svc.conftest import clean_environment


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path, ModelRelay(), "ann")
    for name, value in clean_environment(SVC_HOME=str(place.home.root)).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(protocol, "ASK_SECONDS", 60.0)
    return place


def record_of(place: Place) -> Path:
    with place.device() as device:
        return device.record


def test_starts_once_and_ends(place: Place) -> None:
    record = record_of(place)
    assert running_watchers(place.home) == []
    assert stop(record) is None
    found, new = start(place.folder, record)
    assert new
    assert found.pid != os.getpid()
    assert start(place.folder, record) == (found, False)
    assert running_watchers(place.home) == [found]
    place.write("new/a.txt", "one")
    with place.device() as device:
        assert list(device.scan(lean=True).files) == ["new/a.txt"]
    ended = stop(record)
    assert ended is not None
    assert ended.pid == found.pid
    assert running_watchers(place.home) == []
    assert (record / LOG_NAME).read_text().endswith("ended: told to end (svc watcher stop)\n")


def test_a_hostile_module_in_the_folder_does_not_run(place: Place) -> None:
    """The process starts in a folder whose files come from others."""
    place.write("svc/__init__.py", "raise SystemExit('taken over')")
    place.write("svc/__main__.py", "raise SystemExit('taken over')")
    place.write("signal.py", "raise SystemExit('taken over')")
    record = record_of(place)
    assert start(place.folder, record)[1]
    stop(record)


def test_a_signal_ends_it_cleanly(place: Place) -> None:
    record = record_of(place)
    found, _ = start(place.folder, record)
    os.kill(found.pid, signal.SIGTERM)
    os.waitpid(found.pid, 0)
    assert not (record / protocol.SOCKET_NAME).exists()
    assert (record / LOG_NAME).read_text().endswith("ended: told to end (SIGTERM)\n")


def test_one_that_does_not_answer_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    record = record_of(place)
    found, _ = start(place.folder, record)
    monkeypatch.setattr(protocol, "CONTROL_SECONDS", 0.2)
    os.kill(found.pid, signal.SIGSTOP)
    try:
        with pytest.raises(NotWatchable, match=f"does not answer; end it: kill -9 {found.pid}"):
            stop(record)
        with pytest.raises(NotWatchable, match=f"process {found.pid} watches .* already"):
            start(place.folder, record)
    finally:
        os.kill(found.pid, signal.SIGCONT)
    monkeypatch.setattr(protocol, "CONTROL_SECONDS", 60.0)
    assert stop(record) is not None


def test_one_that_has_not_said_its_number_is_not_told_by_it(place: Place) -> None:
    record = record_of(place)
    with (record / LOCK_NAME).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(NotWatchable, match=f"end the process that holds {lock.name}$"):
            stop(record)


def test_two_who_start_at_once_share_one(place: Place) -> None:
    record = record_of(place)
    with ThreadPoolExecutor(3) as pool:
        started = list(pool.map(lambda _: start(place.folder, record), range(3)))
    assert len({found.pid for found, _ in started}) == 1
    assert [new for _, new in started].count(True) <= 1
    stop(record)


def test_why_it_could_not_start_is_told(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CONTROL_SECONDS", 0.2)
    record = record_of(place)
    with hold_lock(record / LOCK_NAME), pytest.raises(NotWatchable, match=f"process {os.getpid()} watches"):
        start(place.folder, record)


def test_a_watcher_that_ended_is_not_blamed_while_another_command_looks(place: Place) -> None:
    record = record_of(place)
    (record / LOCK_NAME).touch()
    with (record / LOCK_NAME).open() as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        assert stop(record) is None
