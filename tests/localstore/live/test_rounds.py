"""Live sync of a working copy, path by path, against the model relay."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.live.rounds import Done, Rounds
from localstore.live.single import left_out
from localstore.live.stale import MEMORY, VERSIONS
from localstore.sync.transfer.send import batch_of
from localstore.sync.working_copy import WorkingCopy
from svc.flows.push import push
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place

TEXT = "".join(f"line {number}\n" for number in range(12))


class Side:
    """A place whose rounds are run by hand."""

    def __init__(self, place: Place) -> None:
        self.place, self.rounds = place, Rounds()

    def run(self, work: Callable[[WorkingCopy], Done]) -> Done:
        with self.place.device() as copy:
            self.rounds.begin(copy, None)
            done = work(copy)
            while updates := self.rounds.outgoing(copy):
                sent = self.rounds.record_answers(
                    copy, updates, copy.transport.updates(batch_of(copy, updates))
                )
                if sent.lost:
                    self.rounds.bootstrap(copy)
                    done.merged += self.rounds.bring(copy).merged
                self.rounds.again(copy, [*sent.accepted, *sent.lost])
            self.rounds.finish(copy)
            return done

    def save(self, path: str, text: str) -> Done:
        self.place.write(path, text)
        return self.run(lambda copy: self.rounds.capture_saved(copy, [path]))

    def bring(self) -> Done:
        def work(copy: WorkingCopy) -> Done:
            self.rounds.bootstrap(copy)
            return self.rounds.bring(copy)

        return self.run(work)

    def text(self, path: str) -> str:
        return self.place.read(path).decode()


@pytest.fixture
def sides(tmp_path: Path) -> Iterator[tuple[Side, Side]]:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", TEXT)
    ann.write("other/b.txt", "other\n")
    ann.push("One")
    bob.pull()
    found = Side(ann), Side(bob)
    yield found
    for side in found:
        side.rounds.close()


def test_a_save_travels_by_its_path(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "line three"))
    ann.save("new/c.txt", "new\n")
    done = bob.bring()
    assert sorted(done.written) == ["a.txt", "new/c.txt"]
    assert "line three" in bob.text("a.txt")
    assert bob.text("new/c.txt") == "new\n"


def test_a_deleted_file_goes(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    (ann.place.folder / "other/b.txt").unlink()
    ann.run(lambda copy: ann.rounds.capture_saved(copy, ["other/b.txt"]))
    assert bob.bring().written == ["other/b.txt"]
    assert not (bob.place.folder / "other").exists()


def test_an_old_buffer_takes_nobodys_lines_away(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3").replace("line 4", "by ann 4"))
    bob.bring()
    done = bob.save("a.txt", TEXT.replace("line 9", "by bob 9"))
    assert [(one.path, one.lines) for one in done.kept] == [("a.txt", 2)]
    ann.bring()
    for side in sides:
        assert all(word in side.text("a.txt") for word in ("by ann 3", "by ann 4", "by bob 9"))


def test_the_same_save_again_means_it(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3"))
    bob.bring()
    old = TEXT.replace("line 9", "by bob 9")
    assert bob.save("a.txt", old).kept
    assert not bob.save("a.txt", old).kept
    ann.bring()
    assert ann.text("a.txt") == bob.text("a.txt") == old


def test_who_has_read_what_came_edits_that(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3"))
    bob.bring()
    assert not bob.save("a.txt", bob.text("a.txt").replace("by ann 3", "by both 3")).kept
    assert "by both 3" in bob.text("a.txt")
    assert "by ann 3" not in bob.text("a.txt")


def test_an_editor_that_reloaded_once_keeps_what_came_later(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3"))
    bob.bring()
    loaded = bob.text("a.txt")
    ann.save("a.txt", ann.text("a.txt").replace("line 7", "by ann 7"))
    bob.bring()
    done = bob.save("a.txt", loaded.replace("line 10", "by bob 10"))
    assert [one.lines for one in done.kept] == [1]
    assert all(word in bob.text("a.txt") for word in ("by ann 3", "by ann 7", "by bob 10"))


def test_shared_letters_do_not_make_one_word_an_edit_of_another(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "line 3 w361"))
    bob.bring()
    assert "w361" in bob.text("a.txt")  # read, so that likeness alone decides
    done = bob.save("a.txt", TEXT.replace("line 3", "line 3 w362"))
    assert [one.lines for one in done.kept] == [1]
    assert all(word in bob.text("a.txt") for word in ("w361", "w362"))


def test_a_text_that_was_read_is_remembered_when_two_arrive_in_one_round(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    bob.save("a.txt", TEXT.replace("line 11", "by bob 11"))
    ann.bring()
    ann.save("a.txt", ann.text("a.txt").replace("line 1\n", "line 1\n" + "by ann, a long line\n" * 9))
    bob.bring()  # watched from here: nobody reads this one
    read = ""

    def work(copy: WorkingCopy) -> Done:
        nonlocal read
        for change in (("line 3", "by ann 3, a long line"), ("line 5", "w5")):
            ann.save("a.txt", ann.text("a.txt").replace(*change))
            bob.rounds.bootstrap(copy)
            bob.rounds.bring(copy)
            read = read or bob.text("a.txt")
        bob.place.write("a.txt", read.replace("line 9", "by bob 9"))
        return bob.rounds.capture_saved(copy, ["a.txt"])

    done = bob.run(work)
    assert [one.lines for one in done.kept] == [1]
    assert all(word in bob.text("a.txt") for word in ("by ann 3", "w5", "by bob 9"))


def test_a_file_that_changes_more_often_than_texts_are_kept(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    first = bob.text("a.txt")
    for number in range(VERSIONS + 12):
        ann.save("a.txt", ann.text("a.txt") + f"by ann {number}\n")
        bob.bring()
        bob.text("a.txt")
    done = bob.save("a.txt", first.replace("line 9", "by bob 9"))
    assert [one.lines for one in done.kept] == [VERSIONS + 12]
    assert bob.text("a.txt").count("by ann") == VERSIONS + 12


class Shown:
    """An editor that tells what is typed and shows `text`."""

    text = ""

    def edits(self, path: str) -> bool:
        return path == "a.txt"

    def shows(self, path: str, name: bytes) -> bool:
        return name == digest(self.text.encode())

    def plugin_texts(self, path: str) -> list[bytes]:
        return []


def test_a_save_of_what_an_editor_tells_is_not_an_edit_unless_something_else_was_saved_before(
    sides: tuple[Side, Side],
) -> None:
    ann, bob = sides
    shown = Shown()
    bob.rounds.buffers.editors = shown
    shown.text = TEXT.replace("line 2", "typed 2")
    bob.save("a.txt", shown.text)
    assert bob.text("a.txt") == TEXT  # what was typed is told, and comes with that
    bob.save("a.txt", "half a te")
    bob.save("a.txt", shown.text)
    assert bob.text("a.txt") == shown.text
    ann.bring()
    assert ann.text("a.txt") == shown.text


def test_a_file_of_an_editor_that_is_being_written_is_looked_at_when_it_was_closed(
    sides: tuple[Side, Side],
) -> None:
    ann, bob = sides
    bob.rounds.buffers.editors = Shown()
    new = TEXT.replace("line 2", "saved 2")
    with (bob.place.folder / "a.txt").open("r+") as file:
        file.write(new[:20])
        file.flush()
        bob.run(lambda copy: bob.rounds.capture_saved(copy, ["a.txt"]))
        ann.bring()
        assert ann.text("a.txt") == TEXT
        file.seek(0)
        file.write(new)
    bob.run(lambda copy: bob.rounds.capture_saved(copy, ["a.txt"]))
    ann.bring()
    assert ann.text("a.txt") == bob.text("a.txt") == new


def test_what_waits_for_a_file_to_be_closed_is_sent_although_nothing_was_written(
    sides: tuple[Side, Side],
) -> None:
    ann, bob = sides
    bob.rounds.buffers.editors = Shown()
    ann.save("a.txt", TEXT.replace("line 2", "by ann 2"))
    bob.save("a.txt", TEXT.replace("line 9", "by bob 9"))  # merged, and written here by svc
    with (bob.place.folder / "a.txt").open("r+"):
        bob.run(lambda copy: bob.rounds.again(copy, ["a.txt"]))
        assert bob.rounds._unseen == {"a.txt"}
    bob.run(lambda copy: bob.rounds.capture_saved(copy, ["a.txt"]))
    assert not bob.rounds._unseen
    ann.bring()
    assert all(word in ann.text("a.txt") for word in ("by ann 2", "by bob 9"))


def test_after_ten_minutes_a_save_means_what_it_says(
    sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3"))
    bob.bring()
    now = bob.rounds.buffers._now
    monkeypatch.setattr(bob.rounds.buffers, "_now", lambda: now() + MEMORY + 1000)
    assert not bob.save("a.txt", TEXT.replace("line 9", "by bob 9")).kept
    assert "by ann 3" not in bob.text("a.txt")


def test_replaced_text_stays_a_conflict(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "wait 45"))
    bob.bring()
    done = bob.save("a.txt", TEXT.replace("line 3", "wait 60"))
    assert len(done.conflicts) == 1
    assert "wait 45" in bob.text("a.txt")
    assert "wait 60" in bob.text(done.conflicts[0].kept_as)


def test_bytes_edited_on_both_are_both_kept(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.save("logo.bin", "\0one")
    bob.bring()
    ann.save("logo.bin", "\0by ann")
    bob.save("logo.bin", "\0by bob")
    bob.bring()
    copies = [path.read_bytes() for path in bob.place.folder.glob("logo.sync-conflict-*")]
    assert bob.place.read("logo.bin") == b"\0by ann"
    assert copies == [b"\0by bob"]


def test_a_file_that_is_being_written_is_left_alone(sides: tuple[Side, Side]) -> None:
    """An editor has truncated the file and not written it yet when an edit arrives."""
    ann, bob = sides
    ann.save("a.txt", TEXT.replace("line 3", "by ann 3"))
    with (bob.place.folder / "a.txt").open("w") as file:
        bob.bring()
        assert bob.text("a.txt") == ""
        file.write(TEXT.replace("line 9", "by bob 9"))
    bob.run(lambda copy: bob.rounds.capture_saved(copy, ["a.txt"]))
    bob.bring()
    assert all(word in bob.text("a.txt") for word in ("by ann 3", "by bob 9"))


def test_ignored_files_stay_out(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.place.write(".gitignore", "*.log\nout/\n")
    ann.place.write("nested/.git/x", "")
    for path in ("a.log", "deep/a.log", "out/a.txt", "nested/a.txt", ".a.txt.swp"):
        ann.save(path, "no\n")
    with ann.place.device() as copy:
        assert left_out(copy.files, "deep/b.log", copy.git)
        assert not left_out(copy.files, "deep/b.txt", copy.git)
    assert bob.bring().written == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_ignored_files_that_git_tracks_travel(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    folder = ann.place.folder
    ann.place.write(".gitignore", "*.log\n")
    ann.place.write(".stignore", "secret*\n")
    for path in ("a.log", "build/b.txt", "build/secret.txt"):
        ann.place.write(path, "yes\n")
    for words in (["init", "-q"], ["add", "-f", "a.log", "build"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    ann.save("a.log", "yes\n")
    ann.run(lambda copy: ann.rounds.saved_below(copy, ["build/"]))
    ann.save("build/secret.txt", "no\n")
    assert set(bob.bring().written) - {".gitignore", ".stignore"} == {"a.log", "build/b.txt"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_what_git_ignores_for_one_person_waits_for_a_push(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    subprocess.run(["git", "init", "-q"], cwd=ann.place.folder, check=True)
    ann.place.write(".git/info/exclude", "*.env\n")
    done = ann.save("local.env", "password\n")
    assert [(one.path, "git ignores it for you" in one.reason) for one in done.skipped] == [
        ("local.env", True)
    ]
    ann.place.write("deep/other.env", "password\n")
    ann.run(lambda copy: ann.rounds.saved_below(copy, ["deep/"]))
    ann.run(lambda copy: ann.rounds.saved_below(copy, [""]))
    assert bob.bring().written == []
    with ann.place.device() as copy:
        copy.sends_git_ignored = True
        push(copy, "Confirmed")
    ann.save("local.env", "another\n")
    bob.bring()
    assert bob.text("local.env") == "another\n"


def test_a_folder_that_moved_in_is_walked(sides: tuple[Side, Side]) -> None:
    ann, bob = sides
    ann.place.write("moved/x/1.txt", "1\n")
    ann.place.write("moved/2.txt", "2\n")
    ann.run(lambda copy: ann.rounds.saved_below(copy, ["moved/"]))
    assert sorted(bob.bring().written) == ["moved/2.txt", "moved/x/1.txt"]


def test_an_emptied_folder_is_asked_about_though_it_has_just_grown(sides: tuple[Side, Side]) -> None:
    ann, _ = sides
    (ann.place.folder / "other/b.txt").unlink()
    ann.run(lambda copy: ann.rounds.capture_saved(copy, ["other/b.txt"]))
    names = [f"many{number}.txt" for number in range(150)]
    for name in names:
        ann.place.write(name, name)
    ann.run(lambda copy: ann.rounds.capture_saved(copy, names))
    for name in names:
        (ann.place.folder / name).unlink()
    ann.run(lambda copy: ann.rounds.capture_saved(copy, names))
    assert ann.rounds.removals.held == set(names)


def test_who_reads_a_file_as_soon_as_it_comes_edits_that_text(sides: tuple[Side, Side]) -> None:
    """A program reads the file within the round that writes it, another edit arrives, and the program saves
    what it read less one line: nobody's line is there twice."""
    ann, bob = sides
    bob.bring()
    read: list[str] = []

    def work(copy: WorkingCopy) -> Done:
        bob.rounds.bootstrap(copy)
        note = copy.placed

        def placed(path: str, before: bytes | None, new: bytes) -> None:
            read.append(bob.text("a.txt"))  # at once, before the round goes on
            note(path, before, new)

        copy.placed = placed
        return bob.rounds.bring(copy)

    bob.save("a.txt", TEXT.replace("line 11", "by bob 11"))
    ann.bring()
    ann.save("a.txt", ann.text("a.txt").replace("line 3\n", "line 3\nby ann, the first\n"))
    bob.run(work)
    ann.save("a.txt", ann.text("a.txt").replace("the first\n", "the first\nby ann, the second\n"))
    bob.bring()
    bob.save("a.txt", read[0].replace("line 4\n", ""))
    ann.bring()
    for side in sides:
        text = side.text("a.txt")
        assert (text.count("the first"), text.count("the second")) == (1, 1)
        assert "line 4\n" not in text


def test_svc_reads_no_file_that_nobody_else_reads(sides: tuple[Side, Side]) -> None:
    """Else it would count as read by an editor, and texts that nobody holds as held."""
    ann, bob = sides
    bob.save("a.txt", TEXT.replace("line 11", "by bob 11"))
    ann.bring()
    for number in range(3):
        ann.save("a.txt", ann.text("a.txt") + f"by ann {number}\n")
        bob.bring()
        bob.rounds.reads.look()
        assert not bob.rounds.reads.was_read("a.txt")
    bob.place.write("a.txt", bob.text("a.txt").replace("line 5\n", "line 5\nby bob, not sent yet\n"))
    with bob.place.device() as copy:
        bob.rounds.begin(copy, None)
        bob.rounds.capture_saved(copy, ["a.txt"])
        bob.rounds.finish(copy)
    ann.save("a.txt", f"by ann, before all\n{ann.text('a.txt')}")
    bob.bring()  # merges both, and sends what it merged
    bob.rounds.reads.look()
    assert not bob.rounds.reads.was_read("a.txt")
    ann.bring()
    assert ann.text("a.txt") == bob.text("a.txt")
    bob.rounds.reads.look()
    assert bob.rounds.reads.was_read("a.txt")


def test_files_that_get_other_names_one_by_one_are_no_removal(sides: tuple[Side, Side]) -> None:
    ann, _ = sides
    names = [f"many{number}.txt" for number in range(120)]
    for name in names:
        ann.place.write(name, name)
    ann.run(lambda copy: ann.rounds.capture_saved(copy, names))
    for name in names:
        (ann.place.folder / name).rename(ann.place.folder / f"new-{name}")
        for path in (f"new-{name}", name):
            ann.run(partial(ann.rounds.capture_saved, paths=[path]))
    assert not ann.rounds.removals.held
    assert sorted(ann.place.relay.tree("main")) == sorted(
        ["a.txt", "other/b.txt", *map("new-{}".format, names)]
    )
