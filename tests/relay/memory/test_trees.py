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

    assert await trees.drive(steps, learning, cached=known) is not large


def directory(number: int) -> Directory:
    return Directory(1, [Child(f"{number}-{n}", "text", NAME, 1) for n in range(9)], [NAME])


async def test_kept_directories_are_not_loaded_again() -> None:
    key = digest(b"key")
    files = {f"a{n}/b/c": tree.TreeEntry("text", NAME, n) for n in range(9)}
    built = tree.build(files, key)
    asked: list[bytes] = []

    async def loading(wanted: list[bytes]) -> Objects:
        asked.extend(wanted)
        return {one: built.directories[one] for one in wanted}

    kept = trees.Directories()
    for expected in (built.directories.keys(), set()):
        asked.clear()
        known: tree.Known = {}
        (difference,) = await trees.drive(
            tree.diffs(None, [built.root], known), loading, cached=known, directories=kept
        )
        assert difference.changes == {path: (None, entry) for path, entry in files.items()}
        assert set(asked) == expected
        kept.learn(known)


def test_the_least_recently_used_directories_go_first() -> None:
    kept = trees.Directories(most=30)
    one, two, three, four = ({bytes([n]): directory(n)} for n in range(4))
    for some in (one, two, three, one):
        kept.learn(some)
    assert kept.among([*one, *two, *three]) == one | two | three
    kept.among(one)
    kept.learn(four)
    assert kept.among([*one, *two, *three, *four]) == one | three | four
