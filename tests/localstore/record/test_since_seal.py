"""What a folder's record says of edits that are in no seal, read beside its owner."""

from __future__ import annotations

from pathlib import Path

from localstore.core.encoding import digest
from localstore.folder.stat_cache import Stat
from localstore.record.database import Database, FrontierRow, SealedFile
from localstore.record.since_seal import read_since_seal


def _row(path: str, data: bytes) -> FrontierRow:
    return FrontierRow(path, "text", 1, 0, 1, 0, digest(data), len(data), True)


def _sealed(data: bytes) -> SealedFile:
    return SealedFile("text", digest(data), len(data))


def test_edits_of_the_branch_and_what_was_not_sent(tmp_path: Path) -> None:
    db = Database(tmp_path / "state.db")
    with db.step():
        db.put("last", "5ea1")
        db.change_sealed([("same", _sealed(b"a")), ("edited", _sealed(b"a")), ("gone", _sealed(b"a"))])
        db.put_rows([_row("same", b"a"), _row("edited", b"b"), _row("new", b"c")], [], whole=True)
        db.put_stats([Stat("same", 1, 0, 0, 0, "text", digest(b"typed"), 0)], [])
        db.put_stats([Stat("edited", 1, 0, 0, 0, "text", digest(b"b"), 0)], [])
        db.put_stats([Stat("new", 1, 0, 0, 0, "text", digest(b"c"), 0)], [])
    found = read_since_seal(tmp_path)
    assert found is not None
    assert found.seal == "5ea1"
    assert found.edits == {"edited": "changed", "new": "new", "gone": "removed"}
    assert found.unsent == ["same"]
    db.close()


def test_no_record_says_nothing(tmp_path: Path) -> None:
    assert read_since_seal(tmp_path) is None
