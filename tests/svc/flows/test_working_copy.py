"""The flows of a working copy, against the model relay."""

from __future__ import annotations

import json
import shutil
import threading
from pathlib import Path

import pytest

from localstore.core.errors import Conflict, NotFound, ServerMisbehaved
from localstore.core.model.history import Tree
from localstore.core.model.seal import Prepared, PrepareRequest
from localstore.errors import CloneIncomplete, FolderNotEmpty, LocalEdits, UnpulledSeal
from localstore.sync.owning import open_copy
from svc.flows import status as status_flow
from svc.flows.clone import clone
from svc.flows.diff import diff
from svc.flows.init import init
from svc.flows.push import push
from svc.flows.restore import restore
from svc.flows.status import status
from svc.flows.switch import Target, switch
from tests.localstore.model_relay import ModelRelay, ModelTransport
from tests.localstore.place import LINK, Place


@pytest.fixture
def relay() -> ModelRelay:
    return ModelRelay()


@pytest.fixture
def ann(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "ann")


@pytest.fixture
def bob(relay: ModelRelay, tmp_path: Path) -> Place:
    return Place(tmp_path, relay, "bob")


def test_push_seals_and_state_json_names_it(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\n")
    ann.write("d/b.bin", b"\0\1")
    pushed = ann.push("first")
    assert pushed.sent == ["a.txt", "d/b.bin"]
    assert relay.sealed_tree(pushed.seal) == {"a.txt": b"one\n", "d/b.bin": b"\0\1"}
    state = json.loads(ann.read(".svc/state.json"))
    assert state["last_seal"] == pushed.seal == relay.branches["main"].head
    assert sorted(state["tree"]) == ["a.txt", "d/b.bin"]
    link = sorted(path.name for path in (ann.folder / ".svc").iterdir())
    assert link == [".gitignore", "id", "repo.json", "state.json"]
    assert ann.push("again").seal is None


def test_what_a_killed_command_was_writing_beside_the_link_goes(ann: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    for name in ("state.json.0badc0de", "repo.json.0badc0de", "mine.json"):
        ann.write(f".svc/{name}", "{")
    ann.push("again")
    found = sorted(path.name for path in (ann.folder / ".svc").iterdir())
    assert found == [".gitignore", "id", "mine.json", "repo.json", "state.json"]


def test_push_over_an_unpulled_seal_sends_nothing(ann: Place, bob: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.write("b.txt", "two\n")
    with pytest.raises(UnpulledSeal):
        bob.push()
    assert relay.tree("main") == {"a.txt": b"one\n"}


def test_edits_of_two_people_in_one_line_meet(ann: Place, bob: Place) -> None:
    ann.write("a.py", "def area(w, h):\n    return w * h\n")
    ann.push()
    bob.pull()
    ann.write("a.py", "def area(width, h):\n    return width * h\n")
    bob.write("a.py", "def area(w, h=1):\n    return w * h\n")
    ann.push()
    pulled = bob.pull("merge")
    assert (pulled.conflicts, list(pulled.merged)) == ([], ["a.py"])
    bob.push()
    ann.pull()
    assert ann.read("a.py") == bob.read("a.py") == b"def area(width, h=1):\n    return width * h\n"


def test_a_byte_file_edited_twice_keeps_both(ann: Place, bob: Place) -> None:
    ann.write("c.bin", b"\0one")
    ann.push()
    bob.pull()
    ann.write("c.bin", b"\0ann")
    bob.write("c.bin", b"\0bob")
    ann.push()
    pulled = bob.pull("merge")
    [kept] = pulled.conflicts
    assert (kept.path, bob.read("c.bin"), bob.read(kept.kept_as)) == ("c.bin", b"\0ann", b"\0bob")
    assert ".sync-conflict-20261121-060000-" in kept.kept_as


def test_plain_pull_refuses_over_edits_and_leaves_new_files_alone(ann: Place, bob: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    ann.write("a.txt", "two\n")
    ann.push()
    bob.write("new.txt", "mine")
    bob.write("a.txt", "three\n")
    with pytest.raises(LocalEdits, match=r"a\.txt"):
        bob.pull()
    assert bob.read("a.txt") == b"three\n"
    bob.write("a.txt", "one\n")
    assert bob.pull().changed == ["a.txt"]
    assert bob.files() == {"a.txt": b"two\n", "new.txt": b"mine"}


def test_a_pull_names_only_the_edits_that_the_branch_changed_too(ann: Place, bob: Place) -> None:
    for name in ("both.txt", "both.bin", "gone.txt", "mine.txt"):
        ann.write(name, "one\n")
    ann.push()
    bob.pull()
    for name in ("both.txt", "both.bin", "theirs.txt", "new.txt"):
        ann.write(name, "two\n")
    (ann.folder / "gone.txt").unlink()
    ann.push()
    for name in ("both.txt", "both.bin", "gone.txt", "mine.txt", "new.txt", "alone.txt"):
        bob.write(name, "three\n")
    (bob.folder / "both.txt").unlink()
    with pytest.raises(LocalEdits, match="pull would overwrite local edits in") as refused:
        bob.pull()
    assert refused.value.extra["paths"] == ["both.bin", "both.txt", "gone.txt", "new.txt"]
    assert "theirs.txt" not in bob.files()


def test_a_pull_over_edits_that_the_branch_left_alone_says_so(ann: Place, bob: Place) -> None:
    for name in ("theirs.txt", "mine.txt"):
        ann.write(name, "one\n")
    ann.push()
    bob.pull()
    ann.write("theirs.txt", "two\n")
    ann.push()
    bob.write("mine.txt", "three\n")
    with pytest.raises(LocalEdits, match=r"edits that are not pushed, in mine\.txt; .* to keep them"):
        bob.pull()
    assert bob.pull("merge").changed == ["theirs.txt"]
    assert bob.files() == {"mine.txt": b"three\n", "theirs.txt": b"two\n"}


def test_force_moves_edits_to_the_trash(ann: Place, bob: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.push()
    bob.pull()
    bob.write("a.txt", "precious\n")
    pulled = bob.pull("force")
    assert bob.read("a.txt") == b"one\n"
    assert pulled.trash is not None
    assert (pulled.trash / "a.txt").read_bytes() == b"precious\n"


def test_a_file_over_the_cap_is_skipped_and_never_removed(ann: Place, relay: ModelRelay) -> None:
    ann.write("c.bin", b"\0small")
    ann.push()
    ann.write("c.bin", bytes(17 * 1024 * 1024))
    ann.write("big.bin", bytes(17 * 1024 * 1024))
    pushed = ann.push()
    assert [(one.path, one.size, one.cap) for one in pushed.skipped] == [
        ("big.bin", 17 << 20, 16 << 20),
        ("c.bin", 17 << 20, 16 << 20),
    ]
    assert relay.tree("main") == {"c.bin": b"\0small"}


def test_no_delete_and_dry_run(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one")
    ann.write("b.txt", "two")
    ann.push()
    (ann.folder / "a.txt").unlink()
    ann.write("b.txt", "TWO")
    planned = ann.push(dry_run=True)
    assert (planned.sent, planned.removed, planned.seal) == (["b.txt"], ["a.txt"], None)
    assert relay.tree("main")["b.txt"] == b"two"
    assert ann.push(no_delete=True).removed == []
    assert relay.tree("main") == {"a.txt": b"one", "b.txt": b"TWO"}
    assert ann.push().removed == ["a.txt"]


def test_a_new_ignore_rule_does_not_remove_what_is_sealed(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.log", "one")
    ann.push()
    ann.write(".gitignore", "*.log\n")
    ann.write("b.log", "two")
    ann.push()
    assert sorted(relay.tree("main")) == [".gitignore", "a.log"]


def test_a_tracked_file_that_became_a_link_is_not_removed(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one")
    ann.push()
    (ann.folder / "a.txt").unlink()
    (ann.folder / "a.txt").symlink_to("/etc/hostname")
    assert [one.reason for one in ann.push().skipped] == ["symlink"]
    assert relay.tree("main") == {"a.txt": b"one"}


def test_pull_does_not_write_through_a_directory_that_became_a_link(
    ann: Place, bob: Place, tmp_path: Path
) -> None:
    ann.write("d/a.txt", "one")
    ann.push()
    bob.pull()
    ann.write("d/b.txt", "two")
    ann.push()
    outside = tmp_path / "outside"
    outside.mkdir()
    shutil.rmtree(bob.folder / "d")
    (bob.folder / "d").symlink_to(outside)
    bob.pull("merge")
    assert list(outside.iterdir()) == []
    assert (bob.folder / "d").is_symlink()
    (bob.folder / "d").unlink()
    bob.write("d/a.txt", "one")
    bob.pull()
    assert bob.files() == {"d/a.txt": b"one", "d/b.txt": b"two"}


def test_clone_verifies_writes_and_is_ready_to_push(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    ann.write("a.txt", "one\n")
    ann.write("d/b.bin", b"\0\1")
    ann.push()
    cyd = Place(tmp_path, relay, "cyd")
    shutil.rmtree(cyd.folder / ".svc")
    done = clone(relay.transport("main", cyd.key), cyd.home, LINK, cyd.folder, cyd.key)
    assert (done.files, cyd.files()) == (2, ann.files())
    cyd.write("a.txt", "one\ntwo\n")
    assert cyd.push().sent == ["a.txt"]
    with pytest.raises(FolderNotEmpty):
        clone(relay.transport("main", cyd.key), cyd.home, LINK, cyd.folder, cyd.key)


def test_clone_without_a_key_reads_and_pulls(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    from localstore.home import Home
    from localstore.sync.owning import open_copy
    from svc.flows.pull import pull

    ann.write("a.txt", "one\n")
    ann.push()
    home, folder, transport = Home(tmp_path / "h"), tmp_path / "copy", ModelTransport(relay, "main")
    clone(transport, home, LINK, folder)
    ann.write("a.txt", "two\n")
    ann.push()
    with open_copy(folder, home, transport) as device:
        assert pull(device).changed == ["a.txt"]
    assert (folder / "a.txt").read_bytes() == b"two\n"


def test_an_interrupted_clone_goes_on(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    for number in range(5):
        ann.write(f"{number}.txt", f"text {number}")
    ann.push()
    cyd = Place(tmp_path, relay, "cyd")
    shutil.rmtree(cyd.folder / ".svc")

    class Cut(ModelTransport):
        def fetch_pack(self, digests):  # type: ignore[no-untyped-def]
            for piece in super().fetch_pack(digests):
                yield piece[: len(piece) // 2]
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        clone(Cut(relay, "main"), cyd.home, LINK, cyd.folder, cyd.key)
    cyd.write("3.txt", "torn")
    clone(relay.transport("main", cyd.key), cyd.home, LINK, cyd.folder, cyd.key)
    assert ann.files().items() <= cyd.files().items()
    assert b"torn" in cyd.files().values()


def test_a_clone_where_an_earlier_one_was_removed_is_whole(
    ann: Place, bob: Place, relay: ModelRelay, tmp_path: Path
) -> None:
    """The file system hands the inode of the removed `.svc` to the new one."""
    ann.write("a.txt", "one\n")
    ann.write("b.bin", b"\0")
    ann.push()
    for _ in range(10):
        folder = tmp_path / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        done = clone(relay.transport("main", bob.key), bob.home, LINK, folder, bob.key)
        assert (done.files, sorted(path.name for path in folder.glob("?.*"))) == (2, ["a.txt", "b.bin"])
        with open_copy(folder, bob.home, relay.transport("main", bob.key), bob.key) as copy:
            assert push(copy, "again").seal is None


def test_a_clone_that_does_not_hold_the_seal_fails_and_goes_on(
    ann: Place, relay: ModelRelay, tmp_path: Path
) -> None:
    ann.write("a.txt", "one\n")
    ann.write("b.bin", b"\0b")
    ann.write("c.txt", "three\n")
    ann.push()
    cyd = Place(tmp_path, relay, "cyd")
    shutil.rmtree(cyd.folder / ".svc")

    class Meddled(ModelTransport):
        def fetch_pack(self, digests):  # type: ignore[no-untyped-def]
            yield from super().fetch_pack(digests)
            for name in ("a.txt", "b.bin"):
                (cyd.folder / name).unlink(missing_ok=True)  # somebody clears the folder meanwhile

    with pytest.raises(CloneIncomplete, match="changed or vanished") as refused:
        clone(Meddled(relay, "main"), cyd.home, LINK, cyd.folder, cyd.key)
    assert "a.txt" in refused.value.extra["paths"]
    clone(relay.transport("main", cyd.key), cyd.home, LINK, cyd.folder, cyd.key)
    assert cyd.files() == ann.files()
    assert cyd.push().seal is None


def test_a_lying_tree_writes_nothing(ann: Place, relay: ModelRelay, tmp_path: Path) -> None:
    ann.write("a.txt", "one\n")
    ann.push()

    class Liar(ModelTransport):
        def tree(self, seal_id: str) -> Tree:
            import msgspec

            told = super().tree(seal_id)
            return msgspec.structs.replace(
                told, entries=[msgspec.structs.replace(e, blake3="0" * 64) for e in told.entries]
            )

    cyd = Place(tmp_path, relay, "cyd")
    shutil.rmtree(cyd.folder / ".svc")
    with pytest.raises(ServerMisbehaved, match="does not verify"):
        clone(Liar(relay, "main"), cyd.home, LINK, cyd.folder, cyd.key)
    assert cyd.files() == {}


def test_a_lying_prepare_is_not_signed(ann: Place) -> None:
    ann.write("a.txt", "one\n")

    class Liar(ModelTransport):
        def prepare(self, request: PrepareRequest) -> Prepared:
            import msgspec

            return super().prepare(msgspec.structs.replace(request, message="something else"))

    ann.wrap = lambda transport: Liar(ann.relay, "main")
    with pytest.raises(ServerMisbehaved, match="message"):
        ann.push("mine")
    assert ann.relay.branches["main"].head is None


def test_a_lost_finalize_answer_is_recognised(ann: Place) -> None:
    class Lost(ModelTransport):
        def finalize(self, request):  # type: ignore[no-untyped-def]
            super().finalize(request)
            raise ConnectionError

    ann.write("a.txt", "one\n")
    ann.wrap = lambda transport: Lost(ann.relay, "main")
    with pytest.raises(ConnectionError):
        ann.push()
    ann.wrap = lambda transport: transport
    assert ann.push().seal is None
    assert json.loads(ann.read(".svc/state.json"))["last_seal"] == ann.relay.branches["main"].head


def test_relinking_recognises_versions_and_keeps_the_rest(ann: Place, bob: Place) -> None:
    for name in "abc":
        ann.write(f"{name}.txt", f"{name} one\n")
    ann.push()
    ann.write("b.txt", "b two\n")
    ann.push()
    shutil.rmtree(ann.folder / ".svc")
    ann.write("b.txt", "b one\n")
    ann.write("c.txt", "c mine\n")
    linked = init(ann.relay.transport("main", ann.key), ann.home, LINK, ann.folder, ann.key)
    assert linked.recognised == 2
    assert linked.unknown == ["c.txt"]
    pulled = ann.pull("merge")
    assert (ann.read("b.txt"), ann.read("c.txt")) == (b"b two\n", b"c one\n")
    [kept] = pulled.conflicts
    assert (kept.path, ann.read(kept.kept_as)) == ("c.txt", b"c mine\n")


def test_status_does_not_wait_for_a_server_that_does_not_answer(
    ann: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann.write("a.txt", "one")
    ann.push()
    answered = threading.Event()
    monkeypatch.setattr(status_flow, "WAIT_SECONDS", 0.05)
    with ann.device() as device:
        monkeypatch.setattr(device.transport, "ref", answered.wait)
        found = status(device)
        answered.set()
    assert (found.offline, found.head, found.changed) == (True, None, [])


def test_status_says_what_the_server_says(ann: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What differs here is known all the same."""
    ann.write("a.txt", "one")
    ann.push()
    ann.write("a.txt", "two")

    def gone() -> None:
        raise NotFound("there is no branch main")

    with ann.device() as device:
        monkeypatch.setattr(device.transport, "ref", gone)
        answer = status(device)
    assert (answer.changed, answer.offline) == (["a.txt"], True)
    assert answer.advice == "there is no branch main"


def test_status_and_diff_work_offline(ann: Place) -> None:
    ann.write("a.txt", "one\n")
    ann.write("b.txt", "b\n")
    ann.push()
    ann.write("a.txt", "two\n")
    ann.write("n.txt", "new\n")
    (ann.folder / "b.txt").unlink()
    with ann.device() as device:
        found = status(device, offline=True)
        assert (found.changed, found.new, found.removed) == (["a.txt"], ["n.txt"], ["b.txt"])
        assert found.offline
        assert not status(device).behind
        patch = "".join(file.patch or "" for file in diff(device, ["a.txt"])).encode()
    assert b"-one\n+two\n" in patch
    assert b"n.txt" not in patch


def test_a_diff_goes_on_where_files_went_since_it_began(ann: Place) -> None:
    long = "".join(f"line {number}\n" for number in range(40))
    for name in ("a.txt", "b.txt", "c.txt"):
        ann.write(name, name + long)
    ann.push()
    ann.write("a.txt", "changed\n")
    ann.write("b.txt", "changed\n")
    ann.write("new.txt", "new\n")
    (ann.folder / "c.txt").rename(ann.folder / "moved.txt")
    with ann.device() as device:
        files = diff(device)
        listed = [next(files)]
        for name in ("b.txt", "new.txt", "moved.txt"):
            (ann.folder / name).unlink()
        listed += files
    assert [(file.path, file.status) for file in listed] == [
        ("a.txt", "modified"), ("b.txt", "removed"), ("c.txt", "removed"),
    ]  # fmt: skip


def test_restore_keeps_the_edit_in_the_trash(ann: Place) -> None:
    ann.write("d/a.txt", "one\n")
    ann.push()
    ann.write("d/a.txt", "precious\n")
    with ann.device() as device:
        done = restore(device, ["d"])
        with pytest.raises(NotFound):
            restore(device, ["nothing"])
    assert ann.read("d/a.txt") == b"one\n"
    assert done.trash is not None
    assert (done.trash / "d/a.txt").read_bytes() == b"precious\n"


def test_switch_there_and_back_carrying_an_edit(ann: Place, relay: ModelRelay) -> None:
    ann.write("a.txt", "one\ntwo\nthree\n")
    ann.write("main.txt", "only here\n")
    ann.push()
    side = Place(ann.folder.parent, relay, "side", "side")
    side.write("a.txt", "one\ntwo\nTHREE\n")
    side.push()
    with ann.device() as device:
        switch(device, Target("side", relay.transport("side", ann.key), ann.key))
    assert ann.files() == {"a.txt": b"one\ntwo\nTHREE\n"}
    ann.branch = "side"
    ann.write("a.txt", "ONE\ntwo\nTHREE\n")
    with ann.device() as device:
        with pytest.raises(LocalEdits):
            switch(device, Target("main", relay.transport("main", ann.key), ann.key))
        switch(device, Target("main", relay.transport("main", ann.key), ann.key), "merge")
    assert ann.files() == {"a.txt": b"ONE\ntwo\nthree\n", "main.txt": b"only here\n"}


def test_another_device_key_takes_over_without_losing_edits(ann: Place, relay: ModelRelay) -> None:
    from localstore.core.identity.keys import DeviceKey

    ann.write("a.txt", "one\n")
    ann.push()
    ann.write("a.txt", "one\ntwo\n")
    ann.key = DeviceKey.generate(b"another".ljust(32, b"."))
    ann.pull("merge")
    ann.push()
    assert relay.tree("main") == {"a.txt": b"one\ntwo\n"}


@pytest.mark.parametrize("inside", [True, False])
def test_restore_writes_nothing_through_a_link(ann: Place, tmp_path: Path, inside: bool) -> None:
    target = ann.folder / "real" if inside else tmp_path / "outside"
    target.mkdir()
    (target / "f").write_text("target\n")
    ann.write("d/f", "one\n")
    ann.write("e.txt", "one\n")
    ann.push()
    shutil.rmtree(ann.folder / "d")
    (ann.folder / "d").symlink_to(target)
    ann.write("e.txt", "two\n")
    for paths in (["d/f"], ["d"], ["d", "e.txt"]):
        with ann.device() as copy, pytest.raises(Conflict, match="a link is where d/f belongs"):
            restore(copy, paths)
    assert (target / "f").read_text() == "target\n"
    assert ann.read("e.txt") == b"two\n"  # refused before anything was written
