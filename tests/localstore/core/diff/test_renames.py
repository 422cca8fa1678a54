"""Renames as git finds them."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from localstore.core.diff.renames import Candidates, File, Rename, candidates, exact, similar
from localstore.core.encoding import digest
from localstore.core.model.limits import MIB, RENAME_PAIRS

WORDS = tuple(f"word{number} of the line" for number in range(60))


def found(old: dict[str, bytes], new: dict[str, bytes]) -> set[Rename]:
    removed = {path: _file(data) for path, data in old.items() if path not in new}
    added = {path: _file(data) for path, data in new.items() if path not in old}
    moved = exact(removed, added)
    left = candidates(removed, added, moved)
    return {*moved, *similar(left, old.__getitem__, new.__getitem__)}


def _file(data: bytes) -> File:
    return File(digest(data), len(data), True)


def in_git(folder: Path, old: dict[str, bytes], new: dict[str, bytes]) -> set[Rename]:
    def git(*words: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout

    git("init", "-q")
    for state in (old, new):
        for path in folder.rglob("*"):
            if path.is_file() and ".git" not in path.parts:
                path.unlink()
        for path, data in state.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        git("add", "-A")
        git("commit", "-q", "--allow-empty", "-m", "x")
    told = git("diff", "-M50%", "--raw", "HEAD~1", "HEAD").splitlines()
    rows = [line.split("\t") for line in told]
    return {Rename(row[1], row[2], int(row[0].split()[4][1:])) for row in rows if " R" in row[0]}


def text(chance: random.Random) -> list[str]:
    return [f"{chance.choice(WORDS)} {chance.randrange(9)}" for _ in range(chance.randrange(3, 40))]


def changed(chance: random.Random, lines: list[str]) -> list[str]:
    share = chance.choice((0.0, 0.1, 0.3, 0.5, 0.7))
    return [f"new {chance.randrange(99)}" if chance.random() < share else line for line in lines]


@pytest.mark.parametrize("seed", range(40))
def test_the_same_files_moved_as_git_says(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    old: dict[str, bytes] = {}
    new: dict[str, bytes] = {}
    for number in range(chance.randrange(1, 6)):
        lines = text(chance)
        old[f"a/{number}.txt"] = "\n".join([str(number), *lines, ""]).encode()
        where = f"b/{chance.choice((number, number + 50))}.txt"
        after = changed(chance, lines)
        new[where] = "\n".join([str(number), *after, ""]).encode()
        if chance.random() < 0.2:
            new[f"c/{number}.txt"] = "\n".join(text(chance)).encode()
    assert found(old, new) == in_git(tmp_path, old, new)


def test_equal_bytes_are_certain_and_the_same_name_goes_first(tmp_path: Path) -> None:
    old = {"x/one": b"same\n", "y/two": b"same\n", "z/empty": b""}
    new = {"n/two": b"same\n", "n/other": b"same\n", "n/empty": b""}
    assert found(old, new) == {Rename("y/two", "n/two", 100), Rename("x/one", "n/other", 100)}
    empty = Rename("z/empty", "n/empty", 100)  # to git it moved; it has nothing that could tell
    assert found(old, new) == in_git(tmp_path, old, new) - {empty}


def test_bytes_move_only_as_they_are() -> None:
    one = File(b"1" * 32, 100, False)
    assert not candidates({"a": one}, {"b": File(b"2" * 32, 100, False)}, [])
    assert exact({"a": one}, {"b": one}) == [Rename("a", "b", 100)]


def test_more_work_than_the_limits_allow_is_left_undone() -> None:
    many = {str(number): File(b"1" * 32, 10, True) for number in range(RENAME_PAIRS // 100)}
    few = {f"n{number}": File(b"2" * 32, 10, True) for number in range(101)}
    assert not candidates(many, few, [])
    large = File(b"1" * 32, 5 * MIB, True)
    assert not candidates({"a": large, "b": large}, {"c": large, "d": large}, [])
    assert candidates({"a": large}, {"c": large}, [])


def test_many_changed_files_are_found_within_a_bound_on_the_work() -> None:
    """Each with each would be 24 million lookups; lines that few files have tell which to compare."""
    olds = {f"old/{n}": [b"line %d of %d\n" % (at, n) for at in range(600)] for n in range(200)}
    news = {f"new/{n}.txt": [*olds[f"old/{n}"][:500], b"another %d\n" % n] for n in range(200)}
    found = renamed(olds, news)
    assert {(one.old, one.new) for one in found} == {(f"old/{n}", f"new/{n}.txt") for n in range(200)}
    common = [b"line %d\n" % at for at in range(600)]  # nothing tells one of these from another
    assert renamed(dict.fromkeys(olds, common), {path: [*common, b"more\n"] for path in news}) == []


def renamed(olds: dict[str, list[bytes]], news: dict[str, list[bytes]]) -> list[Rename]:
    old, new = ({path: b"".join(found) for path, found in side.items()} for side in (olds, news))
    sides = [{path: File(b"", len(text), True) for path, text in side.items()} for side in (old, new)]
    return similar(Candidates(*sides), old.__getitem__, new.__getitem__)
