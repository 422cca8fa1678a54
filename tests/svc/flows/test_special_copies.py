"""Conflicts with links, with directories without files, and with records of conflicts that are over."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.core.errors import Conflict
from localstore.folder.overlay import OverlayFiles
from localstore.home import Home
from localstore.record.conflicts import RecordedConflict
from localstore.record.entry import known_by_bytes
from localstore.sync.aside import forget_and_move_aside, move_aside
from localstore.sync.conflicts import record_versions
from localstore.sync.settle import recover
from localstore.sync.trash import move_to_trash
from localstore.sync.working_copy import WorkingCopy
from svc.flows.common import conflict_copies
from svc.flows.merge.resolve import conflicts, open_conflict, require_no_conflicts, resolve
from tests.localstore.histories import Killed
from tests.localstore.life import Life
from tests.localstore.live.test_rounds import Side
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import LINK, Place

KEPT = "d.sync-conflict-20260101-000000-offline"
DISKS = (Path("/dev/shm"), Path("/tmp"))


@pytest.fixture
def copy(tmp_path: Path) -> Iterator[WorkingCopy]:
    """A working copy without a server."""
    yield from opened_copy(tmp_path, tmp_path / "home")


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[WorkingCopy]:
    """One whose trash is on another file system."""
    here = tmp_path.stat().st_dev
    away = next((disk for disk in DISKS if disk.is_dir() and disk.stat().st_dev != here), None)
    if away is None:
        pytest.skip("there is one file system only")
    with tempfile.TemporaryDirectory(dir=away) as home:
        yield from opened_copy(tmp_path, Path(home))


def opened_copy(root: Path, home: Path) -> Iterator[WorkingCopy]:
    (root / "folder" / ".svc").mkdir(parents=True)
    (root / "record").mkdir()
    opened = WorkingCopy(root / "folder", LINK, Home(home), root / "record")
    yield opened
    opened.close()


def write(copy: WorkingCopy, path: str, text: str) -> None:
    (copy.folder / path).parent.mkdir(parents=True, exist_ok=True)
    (copy.folder / path).write_text(text)


def record(copy: WorkingCopy, path: str, theirs: bytes | None, mine: bytes | None, kept: str = KEPT) -> None:
    with copy.db.step():
        copy.db.conflicts.put(RecordedConflict(path, kept, None, theirs, mine, None, "", ""))


def below(folder: Path) -> list[str]:
    """Everything in a folder; a directory ends with `/`."""
    found = (path for path in folder.rglob("*") if ".svc" not in path.parts)
    ends = ((path, "/" if path.is_dir() and not path.is_symlink() else "") for path in found)
    return sorted(f"{path.relative_to(folder)}{end}" for path, end in ends)


# --- a new directory where the branch removed a file


def replaced_by_a_directory(tmp_path: Path, data: bytes = b"a file\n") -> tuple[Place, Place]:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("d", data)
    ann.write("page", "page\n")
    ann.push()
    bob.pull()
    (ann.folder / "d").unlink()
    (bob.folder / "d").unlink()
    bob.write("d/new", "new\n")
    return ann, bob


def test_a_directory_stays_where_the_branch_removed_a_file(tmp_path: Path) -> None:
    ann, bob = replaced_by_a_directory(tmp_path)
    ann.push()
    assert bob.pull("merge").conflicts == []
    bob.push()
    ann.pull()
    assert ann.files() == bob.files() == {"d/new": b"new\n", "page": b"page\n"}


def test_a_directory_stays_in_a_live_folder_too(tmp_path: Path) -> None:
    places = replaced_by_a_directory(tmp_path)
    ann, bob = map(Side, places)
    ann.run(lambda copy: ann.rounds.capture_saved(copy, ["d"]))
    done = bob.bring()
    assert (done.conflicts, places[1].read("d/new")) == ([], b"new\n")
    for side in (ann, bob):
        side.rounds.close()


def test_a_directory_stays_where_the_branch_renamed_a_binary_file(tmp_path: Path) -> None:
    places = replaced_by_a_directory(tmp_path, b"\0bytes")
    ann, bob = map(Side, places)
    places[0].write("e", b"\0bytes")
    ann.run(lambda copy: ann.rounds.capture_saved(copy, ["d", "e"]))
    done = bob.bring()
    assert (done.conflicts, places[1].read("d/new")) == ([], b"new\n")
    assert places[1].read("e") == b"\0bytes"
    for side in (ann, bob):
        side.rounds.close()


def test_an_empty_directory_gives_way(copy: WorkingCopy) -> None:
    (copy.folder / "d" / "sub").mkdir(parents=True)
    move_aside(copy, "d")
    assert (below(copy.folder), copy.conflicts, conflicts(copy)) == ([], [], ([], []))


# --- links


def test_a_link_as_copy_can_be_resolved(copy: WorkingCopy) -> None:
    write(copy, "d", "theirs\n")
    (copy.folder / KEPT).symlink_to("page")
    record(copy, "d", digest(b"theirs\n"), None)
    with pytest.raises(Conflict, match=f"where {KEPT} belongs; move it away"):
        resolve(copy, open_conflict(copy, "d"), "mine")
    done = resolve(copy, open_conflict(copy, "d"), "theirs")
    require_no_conflicts(copy)
    assert (below(copy.folder), conflicts(copy)) == (["d"], ([], []))
    assert done.trash is not None
    assert (done.trash / KEPT).readlink() == Path("page")


@pytest.mark.parametrize("how", ["mine", "theirs"])
def test_a_link_at_the_path_is_refused(copy: WorkingCopy, how: str) -> None:
    write(copy, KEPT, "mine\n")
    (copy.folder / "d").symlink_to("page")
    record(copy, "d", digest(b"theirs\n"), digest(b"mine\n"))
    with pytest.raises(Conflict, match="where d belongs; move it away"):
        resolve(copy, open_conflict(copy, "d"), "mine" if how == "mine" else "theirs")
    assert (below(copy.folder), len(conflicts(copy)[0])) == (["d", KEPT], 1)


def test_a_link_that_moves_aside_is_no_conflict(copy: WorkingCopy) -> None:
    (copy.folder / "d").symlink_to("page")
    move_aside(copy, "d")
    [(path, kept)] = copy.conflicts
    assert (path, below(copy.folder), conflicts(copy)) == ("d", [kept], ([], []))


def test_a_folder_moves_to_a_trash_on_another_file_system(apart: WorkingCopy) -> None:
    write(apart, "d/x", "x\n")
    write(apart, "d/sub/y", "y\n")
    (apart.folder / "d" / "empty" / "below").mkdir(parents=True)
    (apart.folder / "d" / "link").symlink_to("nowhere")
    (apart.folder / "link").symlink_to("elsewhere")
    trash = move_to_trash(apart, ["d", "link"])
    assert trash is not None
    assert below(apart.folder) == []
    moved = ["d/", "d/empty/", "d/empty/below/", "d/link", "d/sub/", "d/sub/y", "d/x", "link"]
    assert below(trash) == moved
    assert (trash / "d/link").readlink() == Path("nowhere")
    assert (trash / "link").readlink() == Path("elsewhere")


def test_a_dry_run_moves_a_folder_with_a_link(copy: WorkingCopy, tmp_path: Path) -> None:
    write(copy, "d/x", "x\n")
    (copy.folder / "d" / "empty").mkdir()
    (copy.folder / "d" / "link").symlink_to("nowhere")
    before = below(copy.folder)
    copy.files.close()
    copy.files = OverlayFiles(copy.folder, tmp_path / "scratch", lambda promise: b"")
    move_to_trash(copy, ["d"])
    assert not copy.exists("d")
    assert below(copy.folder) == before


def test_a_special_file_in_a_folder_is_named(apart: WorkingCopy) -> None:
    write(apart, "d/x", "x\n")
    os.mkfifo(apart.folder / "d" / "pipe")
    with pytest.raises(Conflict, match="d/pipe is neither a file nor a link"):
        move_to_trash(apart, ["d"])
    assert below(apart.folder) == ["d/", "d/pipe", "d/x"]


# --- records of conflicts that are over


def test_a_removal_does_not_take_the_record_of_an_older_conflict(copy: WorkingCopy) -> None:
    """The user moved the copy over the file; later the branch deletes the file."""
    write(copy, "d", "mine\n")
    with copy.db.step():
        copy.save(known_by_bytes("d", "text", digest(b"theirs\n"), 7))
        copy.db.conflicts.put(
            RecordedConflict("d", KEPT, b"b" * 32, b"t" * 32, digest(b"mine\n"), "zoe", "3", "4")
        )
    forget_and_move_aside(copy, "d")
    [conflict], _ = conflicts(copy)
    assert (conflict.path, conflict.theirs, conflict.by, conflict.lines) == ("d", None, None, "")
    assert [announced.deleted for announced in conflict_copies(copy)] == [True]


def test_a_record_that_waits_for_its_copy_gets_the_version_of_now(copy: WorkingCopy) -> None:
    write(copy, "d", "mine\n")
    with copy.db.step():
        copy.db.conflicts.put(RecordedConflict("d", KEPT, None, b"t" * 32, digest(b"mine\n"), "zoe", "", ""))
        record_versions(copy, "d", b"n" * 32, digest(b"mine\n"))
    move_aside(copy, "d")
    [conflict], _ = conflicts(copy)
    assert (conflict.theirs, conflict.by, conflict.kept_as) == (b"n" * 32, None, KEPT)


def test_a_file_that_is_new_after_a_kill_stays(copy: WorkingCopy) -> None:
    """Nothing is journalled where nothing can move."""
    for end in range(1, 100):
        try:
            with Life(end).over(copy):
                forget_and_move_aside(copy, "d")
            break
        except Killed:
            write(copy, "d", "new\n")
            recover(copy)
            assert (below(copy.folder), conflicts(copy)) == (["d"], ([], [])), end
            (copy.folder / "d").unlink()
    assert end > 1


def test_a_copy_beside_a_file_that_is_there_is_not_called_deleted(copy: WorkingCopy) -> None:
    write(copy, "d", "mine\n")
    move_aside(copy, "d")
    write(copy, "d", "theirs\n")
    assert [announced.deleted for announced in conflict_copies(copy)] == [False]
