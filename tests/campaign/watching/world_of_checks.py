"""A watcher of checks as a program, behind a cable, for the tests of what disturbs it."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.cable import Cable
from tests.campaign.conftest import Place
from tests.campaign.world import Machine, Node, Ran, Running
from tests.patience import until

WATCH = ("repo", "checks", "list", "--branch", "main", "--watch", "--interval", "1")


class World(Place):
    """A repository with one seal, a machine that reports and one that watches."""

    def __init__(self, base: Path, node: Node, cable: Cable, handle: str) -> None:
        super().__init__(base, node, handle)
        self.cable = cable
        self.write(self.ann, "a.txt", "one\n")
        self.ann.ok("push", "-m", "First")
        self.bob = self.machine("bob")

    def run(self, name: str, *words: str) -> str:
        """Record a run. Returns its id."""
        return self.ann.ok("repo", "run", "create", name, *words).out.strip()

    def end(self, run: str, conclusion: str = "success", *words: str) -> None:
        self.ann.ok("repo", "run", "update", run, "--conclusion", conclusion, *words)

    def watching(self, *words: str, who: Machine | None = None, sockets: bool = True) -> Running:
        """A watcher that has come to wait."""
        before, asked = self.cable.sockets, len(self.cable.asked)
        begun = (who or self.bob).begin(*(words or WATCH))
        if sockets:
            until(lambda: self.cable.sockets > before, "it listens")
        reads = 2 if sockets else 1

        def seen() -> int:
            return sum(path.endswith("/checks") for path in self.cable.asked[asked:])

        until(lambda: seen() >= reads or begun.over(), "it has read the checks")
        return begun

    def shown(self, watcher: Running) -> list[list[str]]:
        """Name and state of each line so far."""
        text = Path(watcher.out.name).read_text()
        return [line.split("\t")[:2] for line in text.splitlines()]


def ended(done: Ran, code: int, says: str = "") -> None:
    assert done.code == code, (done.out, done.err)
    assert says in done.err, done.err
