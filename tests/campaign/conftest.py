"""A node of this folder's own, once with a bad road and once with a lying one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.campaign.liar import Liar
from tests.campaign.world import Machine, Node

Join = Callable[..., Machine]


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = Node(tmp_path_factory.mktemp("node"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def _lying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Liar, Node]]:
    road = Liar()
    found = Node(tmp_path_factory.mktemp("lying"), road.address)
    road.upstream = found.port
    yield road, found
    found.close()
    road.close()


@pytest.fixture
def liar(_lying: tuple[Liar, Node]) -> Iterator[Liar]:
    """The lying road, honest until a test says otherwise."""
    road, _ = _lying
    road.twist = road.bend = None
    road.asked.clear()
    road.broken.clear()
    yield road
    assert road.broken == []


@pytest.fixture
def lying_node(_lying: tuple[Liar, Node], liar: Liar) -> Node:
    return _lying[1]


def handle_of(request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.lower())
    return f"t{abs(hash(name)) % 10**8}"


class Place:
    """An account with one repository, `work`, and its machines; the first one is signed in and linked."""

    def __init__(self, base: Path, node: Node, handle: str) -> None:
        self.base, self.node, self.handle = base, node, handle
        self.repo = f"{handle}/work"
        self.ann = Machine(base, "ann", node)
        self.ann.ok("login", "--device-key", "--handle", handle)
        self.ann.ok("repo", "create", "work")
        self.ann.ok("repo", "init", self.repo)

    def machine(self, name: str, clone: bool = True) -> Machine:
        """A further device of the account, with a clone."""
        made = Machine(self.base, name, self.node)
        code = self.ann.ok("auth", "device", "add").out.split()[0]
        made.ok("login", "--device-key", "--handle", self.handle, "--pair", code)
        if clone:
            made.ok("repo", "clone", self.repo, str(made.folder), where=self.base)
        return made

    def write(self, machine: Machine, path: str, data: str | bytes) -> None:
        target = machine.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data.encode() if isinstance(data, str) else data)


@pytest.fixture
def place(tmp_path: Path, node: Node, request: pytest.FixtureRequest) -> Iterator[Place]:
    node.turn()
    yield Place(tmp_path, node, handle_of(request))
    node.turn()


@pytest.fixture
def lying(tmp_path: Path, lying_node: Node, request: pytest.FixtureRequest) -> Place:
    return Place(tmp_path, lying_node, handle_of(request))
