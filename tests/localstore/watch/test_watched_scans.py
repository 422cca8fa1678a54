"""What a look may believe of a watcher, and what it may not."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from localstore.core.encoding import digest
from localstore.folder.rescan import TRUST_SECONDS
from localstore.folder.scan_result import Scan
from localstore.folder.stat_cache import RecordedFolder
from localstore.record import scan_record
from localstore.record.database import Database
from localstore.record.entry import known_by_bytes
from localstore.record.scan_record import LastScan
from localstore.record.schema import SCHEMA, STEPS
from localstore.watch import protocol
from localstore.watch.protocol import ENCODE, Changes, WatcherToken
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.localstore.watch.watching import watched


@pytest.fixture
def ann(tmp_path: Path) -> Place:
    return Place(tmp_path, ModelRelay(), "ann")


def record_of(place: Place) -> Path:
    with place.device() as device:
        return device.record


def look(place: Place) -> Scan:
    with place.device() as device:
        found = device.scan(lean=True)
        assert found.files  # read while the record is open
        return found


def differing(place: Place) -> list[str]:
    """Paths that a status would name."""
    with place.device() as device:
        device.scan(lean=True)
        changed, new, removed = device.db.changes_since_seal()
        return changed + new + removed


def lie(place: Place, folder: str) -> None:
    """Records of this folder that only somebody who goes there finds out about."""
    with place.device() as device, device.db.step():
        wrong = [one._replace(digest=b"." * 32, size=99) for one in device.db.folders()[folder].stats()]
        device.db.put_folders({folder: RecordedFolder.of(wrong, b"")}, (), ())


def test_a_save_before_the_look_is_never_missed(ann: Place) -> None:
    ann.write("d/e/a.txt", "0")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        for number in range(200):
            ann.write("d/e/a.txt", str(number))
            assert look(ann).files["d/e/a.txt"].digest == digest(str(number).encode())
            ann.write(f"new{number}/deep/b.txt", str(number))
            assert f"new{number}/deep/b.txt" in look(ann).files


def test_folders_without_changes_are_not_looked_at(ann: Place) -> None:
    ann.write("d/a.txt", "one")
    ann.write("e/a.txt", "one")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        lie(ann, "d/")
        ann.write("e/b.txt", "two")
        found = look(ann)
        assert found.files["d/a.txt"].digest == b"." * 32
        assert found.files["e/b.txt"].digest == digest(b"two")
        with ann.device() as device:
            assert device.scan().files["d/a.txt"].digest == digest(b"one")
            assert device.scan(lean=True).files["d/a.txt"].digest == digest(b"one")


def test_without_a_watcher_every_folder_is_looked_at(ann: Place) -> None:
    ann.write("d/a.txt", "one")
    with watched(ann.folder, record_of(ann)):
        look(ann)
    lie(ann, "d/")
    assert look(ann).files["d/a.txt"].digest == digest(b"one")
    with watched(ann.folder, record_of(ann)):
        lie(ann, "d/")
        assert look(ann).files["d/a.txt"].digest == digest(b"one")  # the first look after a start


def test_a_tracked_file_in_an_ignored_folder_is_looked_at(ann: Place) -> None:
    ann.write("node_modules/x/a.js", "one")
    ann.write("node_modules/y/a.js", "one")
    with watched(ann.folder, record_of(ann)) as running:
        assert protocol.ask_info(running.record).directories == 1  # type: ignore[union-attr]
        with ann.device() as device:
            device.save(known_by_bytes("node_modules/x/a.js", "text", digest(b"one"), 3))
        assert "node_modules/x/a.js" in look(ann).files
        ann.write("node_modules/x/a.js", "two")
        assert look(ann).files["node_modules/x/a.js"].digest == digest(b"two")
        with ann.device() as device:
            device.forget("node_modules/x/a.js")
        ann.write("b.txt", "there must be a file")
        found = look(ann)
        assert "node_modules/x/a.js" not in found.files
        assert found.ignored == 2  # node_modules and .svc


def test_a_file_with_two_names_is_looked_at_each_time(ann: Place, tmp_path: Path) -> None:
    ann.write("d/a.txt", "one")
    os.link(ann.folder / "d/a.txt", tmp_path / "elsewhere")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        (tmp_path / "elsewhere").write_text("two")
        assert look(ann).files["d/a.txt"].digest == digest(b"two")


def test_what_a_mapping_wrote_is_seen_when_it_ends(ann: Place) -> None:
    ann.write("d/a.bin", b"\0" * 4096)
    with watched(ann.folder, record_of(ann)):
        look(ann)
        with (ann.folder / "d/a.bin").open("r+b") as file:
            mapped = mmap.mmap(file.fileno(), 0)
        mapped[:3] = b"new"
        mapped.close()
        assert look(ann).files["d/a.bin"].digest == digest(b"new" + b"\0" * 4093)


def test_what_single_looks_recorded_is_taken_over(ann: Place) -> None:
    ann.write("d/a.txt", "one")
    ann.write("d/b.txt", "one")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        with ann.device() as device, device.db.step():
            one = device.db.scan_record.file("d/a.txt")
            assert one is not None
            device.db.put_stats([one._replace(digest=b"." * 32)])
            assert device.db.scan_record.file("d/a.txt") == one._replace(digest=b"." * 32)
        with ann.device() as device:
            assert set(device.scan(lean=True).files) == {"d/a.txt", "d/b.txt"}
            assert device.db.scan_record.single_folders() == set()


# --- watchers that are none


@contextmanager
def answering(record: Path, answer: bytes | None) -> Iterator[None]:
    """Something at the watcher's socket that says `answer`, or takes every question in silence."""
    listening = socket.socket(socket.AF_UNIX)
    with protocol.socket_path(record) as path:
        listening.bind(path)
    listening.listen()
    over = threading.Event()

    def answer_all() -> None:
        listening.settimeout(0.05)
        kept = []
        while not over.is_set():
            try:
                peer, _ = listening.accept()
            except TimeoutError:
                continue
            kept.append(peer)
            if answer is not None:
                peer.recv(4096)
                with suppress(OSError):
                    peer.sendall(answer)
                peer.close()

    thread = threading.Thread(target=answer_all)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        listening.close()
        (record / protocol.SOCKET_NAME).unlink()


def answer(files: list[bytes], below: list[bytes]) -> bytes:
    return ENCODE(Changes(WatcherToken(b"w" * 16, 2), True, files, below))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xc1",
        b"\x00" * 3_000_000,
        ENCODE({"type": "changes-1", "token": 7}),
        answer([b"../", b"/etc/", b"d/../d/", b"..", b"d"], []),
        answer([], [b"../../", b"\xff/\xfe/", b"//", b"/"]),
        answer([b"gone/and/away/"], [b"d/a.txt/"]),
        answer([b"x/" * 20_000], []),
    ],
)
def test_rubbish_from_the_socket_changes_nothing(ann: Place, said: bytes) -> None:
    ann.write("d/a.txt", "one")
    record = record_of(ann)
    with ann.device() as device, device.db.step():
        device.scan()
        device.db.scan_record.put_last_scan(
            LastScan(WatcherToken(b"w" * 16, 1), int(device.now().timestamp()))
        )
    with answering(record, said):
        assert list(look(ann).files) == ["d/a.txt"]


def test_a_silent_watcher_is_not_waited_for(ann: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "ASK_SECONDS", 0.1)
    ann.write("d/a.txt", "one")
    record = record_of(ann)
    with answering(record, None):
        assert protocol.ask_changes(record, None) is None
        assert list(look(ann).files) == ["d/a.txt"]


def test_a_socket_that_a_killed_watcher_left_is_no_watcher(ann: Place) -> None:
    record = record_of(ann)
    left = socket.socket(socket.AF_UNIX)
    with protocol.socket_path(record) as path:
        left.bind(path)
    left.close()
    ann.write("a.txt", "one")
    assert protocol.ask_changes(record, None) is None
    assert list(look(ann).files) == ["a.txt"]
    with watched(ann.folder, record):
        assert protocol.ask_changes(record, None) is not None


# --- stores of others


def test_a_store_of_the_last_version_is_brought_up(tmp_path: Path) -> None:
    import sqlite3

    sql = sqlite3.connect(tmp_path / "state.db")
    sql.executescript(SCHEMA + STEPS[1] + "PRAGMA user_version=2;")
    sql.execute("INSERT INTO folders VALUES('d/', x'01', ?)", (msgspec.msgpack.encode([]),))
    sql.commit()
    sql.close()
    db = Database(tmp_path / "state.db")
    assert db.scan_record.last_scan() is None
    assert db.scan_record.exclusions() == {}
    assert set(db.folders()) == {"d/"}
    db.close()


def test_a_walk_that_knew_of_no_watcher_leaves_nothing_wrong(ann: Place) -> None:
    """An older svc records folders and leaves the token where it was."""
    ann.write("d/a.txt", "one")
    ann.write("d/x.log", "one")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        ann.write("d/a.txt", "two")
        ann.write("d/.gitignore", "*.log\n")
        with ann.device() as device, device.db.step():
            from localstore.folder.scan import scan

            device.db.put_folders(*scan(device.files, device.db.folders(), device.db)[1])
        ann.write("d/b.txt", "three")
        found = look(ann)
        assert sorted(found.files) == ["d/.gitignore", "d/a.txt", "d/b.txt"]
        assert found.ignored == 2
        assert differing(ann) == sorted(found.files)


def test_what_is_kept_in_place_of_a_look_is_none() -> None:
    for kept in (None, 7, b"", b"\xc1", b"text", ENCODE([1, 2]), ENCODE([[b"w", 1]]), "text"):
        assert scan_record.decode_last_scan(kept) is None
    last = LastScan(WatcherToken(b"w" * 16, 5), 7)
    assert scan_record.decode_last_scan(ENCODE(last)) == last


def test_now_and_then_a_look_goes_everywhere(ann: Place) -> None:
    ann.write("d/a.txt", "one")
    with watched(ann.folder, record_of(ann)):
        look(ann)
        for later, everywhere in ((TRUST_SECONDS - 1, False), (TRUST_SECONDS, True), (0, True)):
            lie(ann, "d/")
            with ann.device() as device:
                now = device.now() + timedelta(seconds=later)
                device.now = lambda now=now: now  # type: ignore[misc]
                found = device.scan(lean=True).files["d/a.txt"].digest
            assert (found == digest(b"one")) == everywhere
