"""What was seen of servers."""

from __future__ import annotations

import sqlite3
import stat
import zlib
from pathlib import Path
from threading import Thread

import pytest

from localstore import known
from localstore.known import KEPT, VALUE_MAX, Store

ALICE, BOB = "alice@https://one.example", "bob@https://two.example"


def test_a_value_comes_back_with_its_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db", clock=lambda: 12.5)
    store.put(ALICE, "repos", ["a", "b"])
    assert store.get(ALICE, "repos", list[str]) == (["a", "b"], 12.5)
    assert store.get(BOB, "repos", list[str]) is None


def test_a_value_of_another_shape_is_unknown(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos", {"from": "a former version"})
    assert store.get(ALICE, "repos", list[str]) is None


def test_signing_out_forgets_the_server_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos", 1)
    store.put(BOB, "repos", 2)
    store.forget_server("https://one.example")
    assert store.get(ALICE, "repos", int) is None
    assert store.get(BOB, "repos", int) is not None


def test_a_prefix_is_forgotten(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos/1/refs", 1)
    store.put(ALICE, "repos/12/refs", 2)
    store.forget(ALICE, "repos/1/")
    assert store.get(ALICE, "repos/1/refs", int) is None
    assert store.get(ALICE, "repos/12/refs", int) is not None


def test_only_the_owner_reads_it(tmp_path: Path) -> None:
    Store(tmp_path / "home" / "known.db").put(ALICE, "repos", 1)
    assert stat.S_IMODE((tmp_path / "home" / "known.db").stat().st_mode) == 0o600


def test_the_oldest_values_go_first(tmp_path: Path) -> None:
    times = iter(range(KEPT + 10))
    store = Store(tmp_path / "known.db", clock=lambda: float(next(times)))
    for number in range(KEPT + 5):
        store.put(ALICE, str(number), number)
    store.close()
    store = Store(tmp_path / "known.db")
    kept = [number for number in range(KEPT + 5) if store.get(ALICE, str(number), int) is not None]
    assert kept == list(range(5, KEPT + 5))


def test_the_oldest_bytes_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "KEPT_BYTES", 3_000)
    times = iter(range(20))
    store = Store(tmp_path / "known.db", clock=lambda: float(next(times)))
    for number in range(10):
        store.put(ALICE, str(number), "x" * 990)
    store.close()
    store = Store(tmp_path / "known.db")
    assert [number for number in range(10) if store.get(ALICE, str(number), str)] == [7, 8, 9]


def test_a_store_closes_while_another_process_writes(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos", 1)
    other = sqlite3.connect(tmp_path / "known.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    store.close()
    other.execute("ROLLBACK")
    other.close()
    assert Store(tmp_path / "known.db").get(ALICE, "repos", int) is not None


def test_several_programs_write_at_once(tmp_path: Path) -> None:
    def write(name: str) -> None:
        store = Store(tmp_path / "known.db")
        for number in range(50):
            store.put(ALICE, f"{name}/{number}", number)
        store.close()

    threads = [Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = Store(tmp_path / "known.db")
    assert all(store.get(ALICE, f"{name}/49", int) is not None for name in "abcd")


def test_a_long_value_is_stored_compressed(tmp_path: Path) -> None:
    store, text = Store(tmp_path / "known.db"), "a line of source\n" * 100_000
    store.put(ALICE, "file", text)
    found = store.get(ALICE, "file", str)
    assert found is not None
    assert found.value == text
    store.close()
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < len(text) / 5


@pytest.mark.parametrize(
    "stored", [b"x", b"xyz", zlib.compress(b"[" * 9)[:-6], zlib.compress(b"{}"), b"\xff"]
)
def test_a_damaged_value_is_unknown(tmp_path: Path, stored: bytes) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos", ["a"])
    with sqlite3.connect(tmp_path / "known.db") as db:
        db.execute("UPDATE known SET value = ?", (stored,))
    db.close()
    assert store.get(ALICE, "repos", list[str]) is None


def test_a_value_that_becomes_too_long_is_unknown(tmp_path: Path) -> None:
    store = Store(tmp_path / "known.db")
    store.put(ALICE, "repos", "")
    with sqlite3.connect(tmp_path / "known.db") as db:
        db.execute("UPDATE known SET value = ?", (zlib.compress(b'"' + b" " * VALUE_MAX + b'"', 9),))
    db.close()
    assert store.get(ALICE, "repos", str) is None
