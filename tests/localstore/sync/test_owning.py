"""A working copy that stays open between rounds, and one that is only looked at while another works."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from localstore.errors import CopyBusy, FolderTurned
from localstore.folder import link
from localstore.folder.link import RepoLink
from localstore.folder.lock import Holder
from localstore.record.database import Database
from localstore.record.entries import SINGLE
from localstore.record.entry import PathRecord
from localstore.sync.owning import LOOK, Bound, RoundOwner, Turn, looked_at, open_copy
from svc.flows.diff import diff
from svc.flows.pull import pull
from svc.flows.push import push
from svc.flows.status import status
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


def rounds_of(place: Place, turn: Turn = Turn("svc agent", 0)) -> RoundOwner:  # noqa: B008
    def bind(repo: RepoLink) -> Bound:
        return place.relay.transport(repo.branch, place.key), place.key

    return RoundOwner(place.folder, place.home, bind, turn)


def test_between_rounds_the_folder_is_free_and_in_a_round_it_is_not(
    relay: ModelRelay, tmp_path: Path
) -> None:
    ann = Place(tmp_path, relay, "ann")
    rounds = rounds_of(ann)
    with rounds.round() as copy:
        with pytest.raises(CopyBusy, match="svc agent"), rounds_of(ann).round():
            pass
        kept = copy
    with open_copy(ann.folder, ann.home, turn=Turn(seconds=0)):
        pass
    with rounds.round() as copy:
        assert copy is kept
    rounds.close()


def test_a_round_sees_what_another_command_wrote_and_keeps_memory_where_none_did(
    relay: ModelRelay, tmp_path: Path
) -> None:
    ann = Place(tmp_path, relay, "ann")
    rounds = rounds_of(ann)
    ann.write("a.txt", "one\n")
    with rounds.round() as copy:
        push(copy, "first")
        entries = copy.entries
    with rounds.round() as copy:
        assert copy.entries is entries, "nobody else wrote"
    ann.write("a.txt", "two\n")
    sealed = ann.push("second").seal
    with rounds.round() as copy:
        assert copy.entries is not entries
        assert copy.last_seal == sealed
        assert push(copy, "third").sent == [], "it is known to be sent"
    rounds.close()


def test_rounds_of_few_paths_never_read_all_entries(
    relay: ModelRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = Place(tmp_path, relay, "ann")
    for number in range(SINGLE + 20):
        ann.write(f"{number}.txt", "one\n")
    ann.push()
    rounds = rounds_of(ann)
    read: list[int] = []
    whole = Database.entries

    def entries(db: Database) -> dict[str, PathRecord]:
        read.append(1)
        return whole(db)

    monkeypatch.setattr(Database, "entries", entries)
    for start in range(0, SINGLE + 20, 20):
        with rounds.round() as copy:
            assert all(copy.entries.get(f"{number}.txt") for number in range(start, start + 20))
    assert read == []
    rounds.close()
    with open_copy(ann.folder, ann.home) as copy:
        assert all(copy.entries.get(f"{number}.txt") for number in range(SINGLE + 20))
    assert read == [1]


def test_a_round_that_fails_leaves_no_memory(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    rounds = rounds_of(ann)
    ann.write("a.txt", "one\n")
    with rounds.round() as copy:
        push(copy, "first")
    with pytest.raises(ZeroDivisionError), rounds.round() as copy, copy.db.step():
        copy.forget("a.txt")
        raise ZeroDivisionError
    with rounds.round() as copy:
        assert "a.txt" in copy.entries, "the step was taken back, and so is what memory had"
    rounds.close()


def test_a_round_follows_a_folder_that_was_turned_or_linked_anew(relay: ModelRelay, tmp_path: Path) -> None:
    ann = Place(tmp_path, relay, "ann")
    ann.write("a.txt", "one\n")
    rounds = rounds_of(ann)
    with rounds.round() as copy:
        push(copy, "first")
        first = copy.record
    elsewhere = msgspec.structs.replace(link.read_repo(ann.folder), branch="other")
    link.write_repo(ann.folder, elsewhere)
    with rounds.round() as copy:
        assert copy.repo.branch == "other"
        assert copy.transport is not None
    (ann.folder / ".svc").rename(tmp_path / "unlinked")
    link.write_repo(ann.folder, elsewhere)
    with rounds.round() as copy:
        assert copy.record != first, "another identity, another record"
        assert copy.last_seal is None
    rounds.close()


def test_a_command_does_not_work_on_a_folder_that_was_turned_while_it_waited(
    relay: ModelRelay, tmp_path: Path
) -> None:
    ann = Place(tmp_path, relay, "ann")
    before = link.read_repo(ann.folder)
    link.write_repo(ann.folder, msgspec.structs.replace(before, branch="other"))
    with (
        pytest.raises(FolderTurned, match="branch other"),
        open_copy(ann.folder, ann.home, turn=Turn(link=before)),
    ):
        pass


def test_who_only_looks_waits_for_nobody_and_leaves_nothing(
    relay: ModelRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localstore.sync.owning.LOOK_SECONDS", 0.0)
    ann = Place(tmp_path, relay, "ann")
    ann.write("a.txt", "one\n")
    ann.push("first")
    ann.write("a.txt", "two\n")
    ann.write("b.txt", "new\n")
    told: list[Holder] = []
    transport = relay.transport("main", ann.key)
    with rounds_of(ann).round() as owner:
        look = Turn("svc status", waiting=told.append)
        with looked_at(ann.folder, ann.home, transport, turn=look) as copy:
            found = status(copy, offline=True)
            assert (found.changed, found.new) == (["a.txt"], ["b.txt"])
            assert [one.path for one in diff(copy)] == ["a.txt", "b.txt"]
            copy.rename("else/where", "private")
        assert [one.command for one in told] == ["svc agent"]
        assert not list(owner.record.glob(f"{LOOK}*"))
        assert owner.db.changes_since_seal() == ([], [], []), "the owner has not looked yet"
        assert push(owner, "second").sent == ["a.txt", "b.txt"]
    assert link.read_repo(ann.folder).repo == "a/b"


@pytest.mark.parametrize("seed", range(4))
def test_rounds_and_commands_in_any_order_lose_nothing(relay: ModelRelay, tmp_path: Path, seed: int) -> None:
    """One folder is worked on by a process that keeps it open and by commands, another by commands; both edit
    lines of their own in the same files."""
    chance = random.Random(seed)
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    names, mine = ("a.txt", "b/c.txt"), {ann: 0, bob: 6}
    expected = {name: [f"line {number}" for number in range(10)] for name in names}
    for name in names:
        ann.write(name, "\n".join(expected[name]))
    ann.push("first")
    bob.pull()
    rounds = rounds_of(ann)

    def edit(who: Place) -> None:
        name, number = chance.choice(names), mine[who] + chance.randrange(4)
        line = expected[name][number] = f"edit {chance.random()}"
        here = who.read(name).decode().split("\n")
        who.write(name, "\n".join([*here[:number], line, *here[number + 1 :]]))

    for _ in range(30):
        who = chance.choice([ann, bob])
        step = chance.choice(["edit", "edit", "command", "round"])
        if step == "edit":
            edit(who)
        elif who is bob or step == "command":
            who.pull("merge")
            who.push("command")
        else:
            with rounds.round() as copy:
                pull(copy, "merge")
                push(copy, "round")
    for place in (ann, bob, ann):
        place.pull("merge")
        place.push("last")
    with rounds.round() as copy:
        pull(copy, "merge")
        assert push(copy, "none").sent == []
    rounds.close()
    bob.pull()
    assert ann.files() == bob.files() == {name: "\n".join(expected[name]).encode() for name in names}
