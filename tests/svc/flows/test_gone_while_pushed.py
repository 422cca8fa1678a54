"""A file that a push has sent is gone again before the push ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localstore.sync.transfer.transport import Transport
from svc.cmd.push import _nothing_to_seal
from tests.localstore.model_relay import ModelRelay
from tests.localstore.place import Place
from tests.svc.flows.test_may_only_read import send_live

TEXT = "".join(f"line {number}\n" for number in range(12))


class Overtaken:
    """A transport. While its first updates are sent, somebody edits a file of them, and removes another that
    they brought."""

    def __init__(self, real: Transport, other: Place) -> None:
        self._real, self._other, self._first = real, other, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def updates(self, batch: Any) -> Any:
        if not self._first:
            return self._real.updates(batch)
        self._first = False
        other = self._other
        other.write("a.txt", TEXT.replace("line 9", "line nine"))
        send_live(other)
        answer = self._real.updates(batch)
        other.pull("merge")
        (other.folder / "new.txt").unlink()
        send_live(other)
        return answer


class Removed(Overtaken):
    """A transport. Once its first updates have been accepted, somebody removes a file that they brought."""

    def updates(self, batch: Any) -> Any:
        answer = self._real.updates(batch)
        if self._first:
            self._first = False
            self._other.pull("merge")
            (self._other.folder / "new.txt").unlink()
            send_live(self._other)
        return answer


def test_a_push_ends_well(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", TEXT)
    ann.push()
    bob.pull()
    ann.write("a.txt", TEXT.replace("line 3", "line three"))
    ann.write("new.txt", "new\n")
    ann.wrap = lambda transport: Overtaken(transport, bob)  # type: ignore[assignment,return-value]
    done = ann.push()
    assert done.seal is not None
    assert ann.files() == relay.tree("main")
    assert b"line three" in ann.read("a.txt")
    assert b"line nine" in ann.read("a.txt")
    assert "new.txt" not in ann.files()


def test_a_second_push_says_that_others_changed_it(tmp_path: Path) -> None:
    relay = ModelRelay()
    ann, bob = Place(tmp_path, relay, "ann"), Place(tmp_path, relay, "bob")
    ann.write("a.txt", TEXT)
    ann.push()
    bob.pull()
    ann.write("new.txt", "new\n")
    ann.wrap = lambda transport: Removed(transport, bob)  # type: ignore[assignment,return-value]
    ann.push()
    ann.wrap = lambda transport: transport  # type: ignore[assignment]
    assert "new.txt" in ann.files()
    assert "new.txt" not in relay.tree("main")
    done = ann.push()
    assert (done.seal, done.behind) == (None, ["new.txt"])
    assert _nothing_to_seal(done) == (
        "Nothing to seal: others changed new.txt on the branch; run: svc pull --merge"
    )
    ann.pull("merge")
    assert ann.files() == relay.tree("main")
    assert _nothing_to_seal(ann.push()) == "Nothing to seal: the branch equals this folder"


def test_what_cannot_be_sent_is_not_said_to_be_on_the_branch(tmp_path: Path) -> None:
    ann = Place(tmp_path, ModelRelay(), "ann")
    ann.write("a.txt", TEXT)
    ann.push()
    (ann.folder / "link").symlink_to("a.txt")
    assert _nothing_to_seal(ann.push()) == "Nothing to seal: the branch has all that can be sent"
