"""Edits of one text on two machines: one rule, whichever command brings them together."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.core.errors import EditsConflict, ServerMisbehaved
from localstore.core.keys import DeviceKey
from localstore.core.model.live import UpdateAnswers, UpdateBatch
from localstore.core.text_merge import marked
from localstore.sync.compose import compose
from localstore.sync.device import Device
from localstore.sync.send import send
from svc.flows import push
from svc.flows.init import init
from svc.flows.restore import restore
from svc.flows.switch import switch
from svc.flows.working import Kept, begin
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import LINK, Place

TEXT = "import os\n\ntimeout = 30\nretries = 3\n\n\ndef main():\n    return timeout\n"
BOTH = TEXT.replace("import os\n", "import os\nimport re\n").replace("return timeout", "return timeout * 2")


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def people(relay: ModelRelay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Place, Place]:
    """Two people who have `app.py`."""
    monkeypatch.setattr(push, "PAUSE", 0.0)
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("app.py", TEXT)
    ann.push()
    bob.pull()
    return ann, bob


def live(place: Place) -> None:
    """Send without sealing."""
    with place.device() as device:
        begin(device)
        compose(device, device.look_around())
        assert not send(device).lost


def timeout(value: int) -> str:
    return TEXT.replace("30", str(value))


def one_side(text: str) -> str:
    return text.replace("import os\n", "import os\nimport re\n")


def other_side(text: str) -> str:
    return text.replace("return timeout", "return timeout * 2")


def copies(place: Place) -> dict[str, str]:
    return {path: data.decode() for path, data in place.files().items() if ".sync-conflict-" in path}


def in_conflict(place: Place, theirs: str, mine: str) -> None:
    """`app.py` is theirs, and the one copy holds mine."""
    assert place.read("app.py").decode() == theirs
    assert list(copies(place).values()) == [mine]


# --- the doors


def test_pull_merges_what_lies_apart_and_says_so(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    ann.push()
    bob.write("app.py", other_side(TEXT))
    pulled = bob.pull("merge")
    assert (list(pulled.merged), pulled.conflicts) == (["app.py"], [])
    assert bob.read("app.py").decode() == BOTH
    bob.push()
    ann.pull()
    assert ann.files() == bob.files() == {"app.py": BOTH.encode()}


def test_pull_keeps_both_sides_of_a_conflict_and_records_it(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(timeout(45)))
    ann.push()
    bob.write("app.py", other_side(timeout(60)))
    pulled = bob.pull("merge")
    in_conflict(bob, one_side(timeout(45)), other_side(timeout(60)))
    [kept] = pulled.conflicts
    assert kept == Kept("app.py", kept.kept_as, kept.by, "4", "3")
    with bob.device() as device:
        [record] = device.db.conflicts.list()
        texts = [device.objects.get(name or b"") for name in (record.base, record.theirs, record.mine)]
    assert texts == [TEXT.encode(), one_side(timeout(45)).encode(), other_side(timeout(60)).encode()]
    bob.push()
    ann.pull()
    assert ann.files() == bob.files()


def test_a_push_that_loses_a_race_merges_and_seals(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    live(ann)
    bob.write("app.py", other_side(TEXT))
    pushed = bob.push()
    assert list(pushed.merged) == ["app.py"]
    assert bob.read("app.py").decode() == BOTH
    assert relay.sealed_tree(pushed.seal) == {"app.py": BOTH.encode()}


def test_the_same_edit_at_both_ends_of_a_race_is_one(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    for place in people:
        place.write("app.py", timeout(60).replace("retries = 3\n", "retries = 3\ndelay = 1\n"))
    live(ann)
    assert bob.push().conflicts == []
    assert relay.tree("main")["app.py"] == ann.read("app.py") == bob.read("app.py")
    assert copies(bob) == {}


def test_a_push_that_meets_a_conflict_stops_before_sealing(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    live(ann)
    bob.write("app.py", timeout(60))
    head = relay.branches["main"].head
    with pytest.raises(EditsConflict, match=r"not sealed: app\.py conflicts with .*then push again"):
        bob.push()
    assert relay.branches["main"].head == head
    in_conflict(bob, timeout(45), timeout(60))
    pushed = bob.push()
    assert relay.sealed_tree(pushed.seal) == bob.files()


def test_switch_carries_an_edit_by_the_same_rule(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, _ = people
    side = Place(ann.folder.parent, relay, "side", "side")
    side.write("app.py", one_side(timeout(45)))
    side.write("same.py", "x = 1\n")
    side.push()
    ann.write("app.py", timeout(60))
    ann.write("same.py", "x = 1\n")
    with ann.device() as device:
        done = switch(device, "side", relay.transport("side", ann.key), "merge")
    in_conflict(ann, one_side(timeout(45)), timeout(60))
    assert [(kept.path, kept.lines, kept.kept_lines) for kept in done.pulled.conflicts] == [
        ("app.py", "4", "3")
    ]


def test_a_folder_linked_again_mixes_nothing(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    ann.push()
    shutil.rmtree(bob.folder / ".svc")
    bob.write("app.py", timeout(60))
    init(bob.relay.transport("main", bob.key), bob.home, LINK, bob.folder, bob.key)
    bob.pull("merge")
    in_conflict(bob, timeout(45), timeout(60))


def test_a_folder_copied_with_its_link_merges_what_was_edited_since(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", one_side(TEXT))
    ann.push()
    shutil.copytree(bob.folder, bob.folder.with_name("copy"))
    bob.folder = bob.folder.with_name("copy")
    bob.write("app.py", other_side(TEXT))
    bob.pull("merge")
    assert bob.files() == {"app.py": BOTH.encode()}


def test_another_key_takes_over_and_merges_what_was_not_sent(people: tuple[Place, Place]) -> None:
    ann, bob = people
    bob.write("app.py", other_side(TEXT))
    bob.pull("merge")
    ann.write("app.py", one_side(TEXT))
    ann.push()
    bob.key = DeviceKey.generate(b"another".ljust(32, b"."))
    bob.pull("merge")
    assert bob.files() == {"app.py": BOTH.encode()}


def test_a_restored_text_is_an_edit_like_any_other(people: tuple[Place, Place]) -> None:
    ann, bob = people
    bob.write("app.py", other_side(TEXT))
    bob.push()
    ann.pull()
    ann.write("app.py", one_side(other_side(TEXT)))
    ann.push()
    first = next(seal for seal, sealed in bob.relay.seals.items() if not sealed.seal.parents)
    with bob.device() as device:
        restore(device, ["app.py"], first)
    assert bob.read("app.py").decode() == TEXT
    bob.pull("merge")
    assert bob.files() == {"app.py": one_side(TEXT).encode()}


def test_windows_line_endings_stand_against_nothing(people: tuple[Place, Place]) -> None:
    ann, bob = people
    ann.write("app.py", TEXT.replace("\n", "\r\n"))
    ann.push()
    bob.write("app.py", timeout(60))
    assert bob.pull("merge").conflicts == []
    assert bob.files() == {"app.py": timeout(60).replace("\n", "\r\n").encode()}


# --- markers


def test_a_text_that_holds_our_markers_is_not_sealed(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people
    ann.write("app.py", timeout(45))
    ann.push()
    bob.write("app.py", timeout(60))
    bob.pull("merge")
    bob.write("app.py", marked(TEXT.encode(), timeout(45).encode(), timeout(60).encode(), "theirs", "mine"))
    shutil.copy(bob.folder / "app.py", bob.folder / "new.py")
    bob.write("other.py", "fine\n")
    pushed = bob.push()
    assert sorted(pushed.refused) == ["app.py", "new.py"]
    assert "svc resolve" in pushed.refused["app.py"]
    sealed = relay.sealed_tree(pushed.seal)
    assert (sealed["app.py"], sealed["other.py"]) == (timeout(45).encode(), b"fine\n")
    bob.write("app.py", timeout(50))
    assert bob.push().sent == ["app.py"]
    assert relay.tree("main")["app.py"] == timeout(50).encode()


# --- races and lies


class Busy(ModelTransport):
    """Somebody else changes the text before each batch of updates. `turns`: what they write."""

    turns: Iterator[Callable[[], None]]
    kinds: list[bool]

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        self.kinds += [one.typed for one in batch.updates if one.kind == "edit_text"]
        for act in self.turns:
            act()
            break
        return super().updates(batch)


def test_after_three_refusals_the_merged_update_goes_as_typed(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people
    kinds: list[bool] = []

    def writes(number: int) -> Callable[[], None]:
        def act() -> None:
            ann.pull("merge")
            ann.write("app.py", ann.read("app.py").decode() + f"\n\n# note {number}\n")
            live(ann)

        return act

    turns = iter([writes(number) for number in range(4)])

    def busy(_: object) -> Busy:
        made = Busy(relay, "main")
        made.turns, made.kinds = turns, kinds
        return made

    bob.wrap = busy  # type: ignore[assignment]
    bob.write("app.py", one_side(TEXT))
    pushed = bob.push()
    assert kinds == [False, False, False, True]
    assert pushed.seal
    bob.wrap = lambda transport: transport
    bob.pull("merge")
    ann.pull("merge")
    assert ann.files() == bob.files() == relay.tree("main")
    expected = one_side(TEXT) + "".join(f"\n\n# note {number}\n" for number in range(4))
    assert ann.read("app.py").decode() == expected


class Mixing(ModelTransport):
    """A relay that says it has another text than was sent."""

    def updates(self, batch: UpdateBatch) -> UpdateAnswers:
        found = super().updates(batch)
        answers = [type(one)(**{**_members(one), "digest": digest(b"mixed").hex()}) for one in found.answers]
        return UpdateAnswers(seq=found.seq, answers=answers)


def _members(one: object) -> dict[str, object]:
    return {name: getattr(one, name) for name in one.__struct_fields__}  # type: ignore[attr-defined]


def test_a_relay_that_has_another_text_than_was_sent_is_named_and_asked_again(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, _ = people
    ann.wrap = lambda _: Mixing(relay, "main")  # type: ignore[assignment]
    ann.write("app.py", timeout(60))
    with pytest.raises(ServerMisbehaved, match=r"app\.py and has another text than was sent"):
        ann.push()
    ann.wrap = lambda transport: transport
    ann.pull("merge")
    assert ann.push().seal
    assert relay.tree("main") == ann.files() == {"app.py": timeout(60).encode()}


# --- killed


class Killed(BaseException):
    """The process is gone: nothing may catch this."""


@contextmanager
def killed_at_step(device: Device, number: int) -> Iterator[None]:
    """Die after so many steps of the database."""
    real, left = device.db.step, [number]

    @contextmanager
    def fragile() -> Iterator[None]:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        with real():
            yield

    device.db.step = fragile  # type: ignore[method-assign]
    yield


@pytest.mark.parametrize("conflict", [False, True], ids=["merged", "in conflict"])
def test_a_pull_killed_at_any_step_is_finished_by_the_next(
    relay: ModelRelay, tmp_path: Path, conflict: bool
) -> None:
    for number in range(40):
        base = tmp_path / str(number)
        base.mkdir()
        here = ModelRelay()
        ann, bob = Place(base, here, "ann"), Place(base, here, "bob")
        ann.write("app.py", TEXT)
        ann.push()
        bob.pull()
        theirs = timeout(45) if conflict else one_side(TEXT)
        mine = timeout(60) if conflict else other_side(TEXT)
        ann.write("app.py", theirs)
        ann.push()
        bob.write("app.py", mine)
        finished = False
        try:
            with bob.device() as device, killed_at_step(device, number):
                from svc.flows.pull import pull

                pull(device, "merge")
                finished = True
        except Killed:
            pass
        bob.pull("merge")
        if conflict:
            in_conflict(bob, theirs, mine)
            with bob.device() as device:
                [record] = device.db.conflicts.list()
                assert bob.read(record.kept_as).decode() == mine
        else:
            assert bob.files() == {"app.py": BOTH.encode()}
        bob.push()
        ann.pull("merge")
        assert ann.files() == bob.files() == here.tree("main")
        if finished:
            return
    raise AssertionError("a pull has more steps than were tried")


def test_an_answer_that_was_lost_is_not_sent_twice(people: tuple[Place, Place], relay: ModelRelay) -> None:
    ann, bob = people

    class Lost(ModelTransport):
        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            super().updates(batch)
            raise Killed

    bob.write("app.py", other_side(TEXT))
    bob.wrap = lambda _: Lost(relay, "main")  # type: ignore[assignment]
    with pytest.raises(Killed):
        bob.push()
    bob.wrap = lambda transport: transport
    ann.pull("merge")
    ann.write("app.py", one_side(ann.read("app.py").decode()))
    ann.push()
    bob.write("app.py", other_side(TEXT) + "# more\n")
    bob.pull("merge")
    assert bob.files() == {"app.py": (BOTH + "# more\n").encode()}
    bob.push()
    assert relay.tree("main") == bob.files()


def test_a_refusal_that_was_lost_leaves_the_edit_to_be_merged(
    people: tuple[Place, Place], relay: ModelRelay
) -> None:
    ann, bob = people

    class Lost(ModelTransport):
        def updates(self, batch: UpdateBatch) -> UpdateAnswers:
            answer = super().updates(batch)
            assert [one.code for one in answer.answers] == ["lane_moved"]
            raise Killed

    ann.write("app.py", timeout(60))
    live(ann)
    bob.write("app.py", timeout(60))
    bob.wrap = lambda _: Lost(relay, "main")  # type: ignore[assignment]
    with pytest.raises(Killed):
        bob.push()
    bob.wrap = lambda transport: transport
    bob.pull("merge")
    assert bob.files() == relay.tree("main") == {"app.py": timeout(60).encode()}
