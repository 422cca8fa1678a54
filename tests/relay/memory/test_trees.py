"""Trees: where their steps run."""

from __future__ import annotations

import threading

import pytest

from localstore.core import tree
from localstore.core.encoding import digest
from localstore.core.tree import Child, Directory
from localstore.core.tree.drive import Objects, Steps
from relay.memory import trees

NAME = digest(b"x")
SMALL = Directory(1, [Child("a", "text", NAME, 1)], [])
LONG = Directory(1, [Child(f"{n:04}", "text", NAME, 1) for n in range(trees.LARGE // trees.ENTRY)], [NAME])


def where() -> Steps[bool]:
    """Whether it ends on the thread that began it."""
    begun = threading.get_ident()
    yield [NAME]
    return threading.get_ident() == begun


async def load(wanted: list[bytes]) -> Objects:
    return dict.fromkeys(wanted, b"")


@pytest.mark.parametrize("large", [False, True])
async def test_steps_over_large_directories_leave_the_event_loop_also_if_those_are_known(large):
    known: tree.Known = {}
    steps = where()

    async def learning(wanted: list[bytes]) -> Objects:
        known[NAME] = LONG if large else SMALL
        return await load(wanted)

    assert await trees.drive(steps, learning, known=known) is not large
