"""What machines do to a working copy: full disks, wrong clocks, odd names, lost links. One sentence each,
nothing lost, and the same command finishes the work when the trouble is over."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.campaign.conftest import Place
from tests.campaign.world import Machine, Ran


def sentence(done: Ran, *said: str) -> None:
    """The command failed with one clear error."""
    assert done.code == 1, (done.out, done.err)
    assert done.err.count("svc: ") == 1, done.err
    for words in said:
        assert words in done.err


def small_files(limit: int) -> None:
    """No file of this process may grow beyond `limit` bytes: what a full disk looks like."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def shifted(seconds: float) -> None:
    """This process's clock is off."""
    real = time.time
    time.time = lambda: real() + seconds


def equal(*machines: Machine) -> None:
    first, *others = machines
    for other in others:
        assert other.files() == first.files()


def test_a_full_disk_stops_a_clone_which_then_goes_on(place: Place) -> None:
    place.write(place.ann, "big.bin", b"\0" + os.urandom(3_000_000))
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob", clone=False)
    clone = ("repo", "clone", place.repo, str(bob.folder))
    sentence(bob.run(*clone, where=place.base, before=lambda: small_files(1_000_000)), "File too large")
    assert bob.files().get("big.bin") in (None, b"")
    bob.ok(*clone, where=place.base)
    equal(place.ann, bob)


@pytest.mark.parametrize("limit", [200_000, 700_000])
def test_a_full_disk_stops_a_pull_and_the_old_file_stays(place: Place, limit: int) -> None:
    place.write(place.ann, "big.bin", b"\0old")
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    place.write(place.ann, "big.bin", b"\0" + os.urandom(800_000))
    place.write(place.ann, "a.txt", "two\n")
    place.ann.ok("push", "-m", "second")
    place.write(bob, "mine.txt", "mine\n")
    sentence(bob.run("pull", "--merge", before=lambda: small_files(limit)))
    assert bob.files()["big.bin"] == b"\0old"
    assert bob.files()["mine.txt"] == b"mine\n"
    assert not [name for name in bob.files() if name.startswith(".svc-")]
    bob.ok("pull", "--merge")
    bob.ok("push", "-m", "mine")
    place.ann.ok("pull")
    equal(place.ann, bob)


def test_a_full_disk_stops_a_push_without_harm(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    place.write(place.ann, "long.txt", "a line that is long enough\n" * 20_000 + os.urandom(200_000).hex())
    sentence(place.ann.run("push", "-m", "second", before=lambda: small_files(100_000)))
    assert place.ann.ok("push", "-m", "second").code == 0
    bob = place.machine("bob")
    equal(place.ann, bob)


def test_a_full_disk_stops_a_restore_and_the_edit_stays_in_reach(place: Place) -> None:
    place.write(place.ann, "big.bin", b"\0" + os.urandom(900_000))
    place.ann.ok("push", "-m", "first")
    sealed = place.ann.files()["big.bin"]
    place.write(place.ann, "big.bin", b"\0precious")
    sentence(place.ann.run("restore", "big.bin", before=lambda: small_files(300_000)))
    assert place.ann.files().get("big.bin") == b"\0precious"
    place.ann.ok("restore", "big.bin")
    assert place.ann.files()["big.bin"] == sealed
    assert b"\0precious" in place.ann.trash()


def test_a_full_trash_stops_a_forced_pull_and_the_edit_stays(place: Place) -> None:
    place.write(place.ann, "big.bin", b"\0old")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    place.write(place.ann, "big.bin", b"\0new")
    place.ann.ok("push", "-m", "second")
    edited = b"\0" + os.urandom(900_000)
    place.write(bob, "big.bin", edited)
    sentence(bob.run("pull", "--force", before=lambda: small_files(300_000)))
    assert bob.files() == {"big.bin": edited}
    assert bob.trash() == []
    bob.ok("pull", "--force")
    assert (bob.files()["big.bin"], bob.trash()) == (b"\0new", [edited])


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_clock_off_by_an_hour_is_corrected(place: Place, hours: int) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first", before=lambda: shifted(hours * 3600))
    bob = place.machine("bob")
    place.write(place.ann, "a.txt", "one\ntwo\n")
    place.ann.ok("push", "-m", "second", before=lambda: shifted(hours * 3600))
    bob.ok("pull", before=lambda: shifted(-hours * 3600))
    equal(place.ann, bob)


def test_a_clock_three_days_ahead_is_named_by_the_sign_in(place: Place) -> None:
    again = ("login", "--device-key", "--handle", place.handle)
    told = place.ann.run(*again, before=lambda: shifted(3 * 86400))
    sentence(told, "this machine's clock says", "set the clock, then run: svc login")
    place.ann.ok(*again)
    place.ann.ok("login", "--device-key", "--handle", place.handle, before=lambda: shifted(3600))


def test_odd_names_are_skipped_by_name_and_stay(place: Place) -> None:
    folder = os.fsencode(place.ann.folder)
    names = [
        b"latin-\xe9.txt",
        b"tab\tname.txt",
        b"line\nbreak",
        b"back\\slash",
        b".git~1",
        b"esc\x1b[31m",
        "rtl\u202etxt.exe".encode(),
    ]
    for name in names:
        with open(os.path.join(folder, name), "wb") as file:  # noqa: PTH118, PTH123 - no Path holds these bytes
            file.write(b"kept\n")
    place.write(place.ann, "a.txt", "one\n")
    done = place.ann.ok("push", "-m", "first")
    assert "not UTF-8" in done.err
    assert "\x1b" not in done.err + done.out
    assert "\u202e" not in done.err + done.out
    place.ann.ok("pull", "--merge")
    place.ann.ok("push", "-m", "again")
    assert set(names) <= {os.fsencode(path.name) for path in place.ann.folder.iterdir()}
    bob = place.machine("bob")
    assert bob.files()["a.txt"] == b"one\n"
    assert not {os.fsencode(name) for name in bob.files()} & {names[0], names[2], names[3]}


def test_a_name_with_a_nul_is_one_sentence(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    done = place.ann.run("restore", "a\0b")
    assert done.code in (1, 2)
    assert place.ann.run("push", "-m", "a\0b").code in (1, 2)
    assert place.ann.run("switch", "a\0b").code in (1, 2)
    assert place.ann.run("repo", "blame", "a\0b").code in (1, 2)


def test_a_read_only_folder_is_named_and_nothing_is_lost(place: Place) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    place.write(place.ann, "d/a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    place.write(place.ann, "d/a.txt", "two\n")
    place.ann.ok("push", "-m", "second")
    (bob.folder / "d").chmod(0o500)
    sentence(bob.run("pull"), "d/", "Permission denied")
    (bob.folder / "d").chmod(0o700)
    bob.ok("pull")
    equal(place.ann, bob)


def test_a_moved_folder_goes_on_as_it_was(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    place.write(place.ann, "a.txt", "one\ntwo\n")
    moved = place.base / "elsewhere"
    place.ann.folder.rename(moved)
    place.ann.folder = moved
    assert place.ann.ok("repo", "status", "--json").json()["changed"] == ["a.txt"]
    assert place.ann.ok("push", "-m", "second", "--json").json()["sent"] == ["a.txt"]
    equal(place.ann, place.machine("bob"))


def test_a_copied_folder_is_another_device_and_both_live(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    copy = place.base / "copy"
    shutil.copytree(place.ann.folder, copy)
    (copy / "a.txt").write_text("one\ncopy\n")
    place.write(place.ann, "a.txt", "original\none\n")
    place.ann.ok("push", "-m", "second")
    place.ann.ok("pull", "--merge", where=copy)
    place.ann.ok("push", "-m", "third", where=copy)
    place.ann.ok("pull", "--merge")
    texts = b"".join(place.ann.files().values())
    assert b"original" in texts
    assert b"copy" in texts
    assert (copy / "a.txt").read_bytes() == place.ann.files()["a.txt"]


def test_a_deleted_link_is_linked_again_without_loss(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "b.txt", "b\n")
    place.ann.ok("push", "-m", "first")
    place.write(place.ann, "a.txt", "one\nunsent\n")
    place.write(place.ann, "new.txt", "new\n")
    shutil.rmtree(place.ann.folder / ".svc")
    unlinked = place.ann.run("push", "-m", "second")
    sentence(unlinked, "svc repo init")
    bob = place.machine("bob")
    place.write(bob, "a.txt", "bob\none\n")
    bob.ok("push", "-m", "bob's")
    place.ann.ok("repo", "init", place.repo)
    place.ann.conflicting("pull", "--merge")
    place.ann.keep_both()
    place.ann.ok("push", "-m", "second")
    texts = b"".join(place.ann.files().values())
    assert b"unsent" in texts
    assert b"bob" in texts
    assert place.ann.files()["new.txt"] == b"new\n"
    bob.ok("pull")
    equal(place.ann, bob)


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"v": 9}', b"\xff"])
@pytest.mark.parametrize("name", ["repo.json", "state.json"])
def test_a_damaged_link_is_one_sentence(place: Place, name: str, damage: bytes) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    place.write(place.ann, "a.txt", "two\n")
    (place.ann.folder / ".svc" / name).write_bytes(damage)
    for command in (("repo", "status"), ("pull", "--merge"), ("push", "-m", "second")):
        done = place.ann.run(*command)
        assert done.code in (0, 1)
        assert place.ann.files() == {"a.txt": b"two\n"}
        if name == "repo.json":
            sentence(done, "repo.json")


def test_two_processes_in_one_folder_take_turns(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.write(place.ann, "big.bin", b"\0" + os.urandom(2_000_000))
    place.node.turn(delay=0.02)
    first = place.ann.begin("push", "-m", "first")
    base = place.base / "second"
    base.mkdir()
    answers = []
    while not first.over():
        second = Second(place.ann, base)
        answers.append(second.run("pull", "--merge"))
    assert first.wait().code == 0
    for done in answers:
        assert done.code == 0 or "another" in done.err or "process" in done.err, done.err
    place.node.turn()
    place.ann.ok("pull", "--merge")
    equal(place.ann, place.machine("bob"))


class Second(Machine):
    """Another terminal on the same machine: its own output, the same home and folder."""

    def __init__(self, first: Machine, base: Path) -> None:
        self.__dict__.update(first.__dict__)
        self.output = base


def test_a_symlink_swapped_in_during_a_pull_is_not_followed(place: Place) -> None:
    for number in range(60):
        place.write(place.ann, f"d/{number}.txt", f"{number}\n")
    place.ann.ok("push", "-m", "first")
    bob = place.machine("bob")
    outside = place.base / "outside"
    outside.mkdir()
    for number in range(60):
        place.write(place.ann, f"d/{number}.txt", f"{number} new\n")
    place.ann.ok("push", "-m", "second")
    running = bob.begin("pull", "--merge")
    real, aside = bob.folder / "d", bob.folder / "aside"
    while not running.over():
        with suppress(OSError):  # the pull moves names as well
            real.rename(aside)
            real.symlink_to(outside)
        time.sleep(0.004)
        with suppress(OSError):
            real.unlink()
            aside.rename(real)
        time.sleep(0.004)
    assert running.wait().code in (0, 1)
    assert bob.run("pull", "--merge").code in (0, 1)  # 1: a file that came back meanwhile is kept as a copy
    assert list(outside.iterdir()) == []
    kept = list(bob.files().values())
    assert all({f"{number}\n".encode(), f"{number} new\n".encode()} & set(kept) for number in range(60))


def test_the_server_gone_in_the_middle_of_a_push(place: Place) -> None:
    place.write(place.ann, "a.txt", "one\n")
    place.ann.ok("push", "-m", "first")
    for cut in (3_000, 300_000):
        place.write(place.ann, "a.txt", f"cut at {cut}\n")
        place.write(place.ann, f"{cut}.bin", b"\0" + os.urandom(400_000))
        place.node.turn(closed=False, cut_up=cut)
        first = place.ann.run("push", "-m", "second")
        assert first.code in (0, 1)
        place.node.turn(closed=True)
        sentence(place.ann.run("push", "-m", "second"), "cannot reach", place.node.address)
        assert place.ann.run("repo", "status").code == 0
        place.node.turn()
        place.ann.ok("push", "-m", "second")
    equal(place.ann, place.machine("bob"))
