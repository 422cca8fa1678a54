"""A file that a push has sent is gone again before the push ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from localstore.sync.transfer.transport import Transport
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
