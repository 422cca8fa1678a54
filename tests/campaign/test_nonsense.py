"""Commands against a relay whose answers are wrong in one place: one clear error, and no harm.

Every answer of the real relay is changed on its way, one value of it at a time, into something of another
type, out of every range, or made for a terminal or a file system to choke on.
"""

from __future__ import annotations

import copy
import random
import re
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.campaign.conftest import Place
from tests.campaign.liar import Liar
from tests.campaign.world import Machine, Ran
from tests.depth import rounds

Where = tuple[str, tuple[str | int, ...]]  # the kind of answer, and the way to one value in it

ESCAPES = "\x1b]0;owned\x07\x1b[2J\u202etxt.exe"
PLACES = ["../../x", "/tmp/x", ".svc/x", ".SVC/x", ".git/hooks/x", "a\0b", "A.TXT", "a.txt/x", "x" * 5000]
NONSENSE: dict[type, list[Any]] = {
    str: [ESCAPES, "", 5, None, *PLACES],
    int: [-1, 1 << 70, 1.5, "9", None, (1 << 53) - 1],
    bool: ["yes", None],
    list: [{}, None, [[]]],
    dict: [[], None, {}, {"": {"": {"": {}}}}],
    type(None): [5, ESCAPES, [None]],
}
COMMANDS = [
    ("pull", "--merge"),
    ("status",),
    ("log",),
    ("blame", "a.txt"),
    ("diff",),
    ("grep", "one", "HEAD~0"),
    ("restore", "a.txt"),
    ("switch", "other"),
    ("repo", "view"),
    ("repo", "list"),
    ("repo", "search", "work"),
    ("repo", "branch"),
    ("repo", "tag", "list"),
    ("repo", "device", "status"),
    ("auth", "status"),
    ("auth", "device", "list"),
    ("auth", "token", "list"),
    ("version",),
]
LIES_EACH = rounds(2, 10)  # of one command


def shape(path: str) -> str:
    """The kind of a request: its path without what names one thing."""
    return re.sub(r"[0-9a-f]{16,}|[0-9A-Z]{20,}", "*", path.partition("?")[0])


def values(answer: Any, way: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield way
    if isinstance(answer, dict):
        for name, value in answer.items():
            yield from values(value, (*way, name))
    elif isinstance(answer, list):
        for at, value in enumerate(answer[:2]):
            yield from values(value, (*way, at))


def changed(answer: Any, way: tuple[str | int, ...], rng: random.Random) -> Any:
    """The answer with nonsense where `way` leads."""
    answer = copy.deepcopy(answer)
    if not way:
        return rng.choice(NONSENSE[type(answer)])
    holder = answer
    for step in way[:-1]:
        holder = holder[step]
    if way[-1] in holder if isinstance(holder, dict) else int(way[-1]) < len(holder):
        holder[way[-1]] = rng.choice(NONSENSE.get(type(holder[way[-1]]), [None]))
    return answer


class Teller:
    """First it listens to what a command asks; then it tells one lie after the other about it."""

    def __init__(self, rng: random.Random) -> None:
        self.heard: set[Where] = set()
        self.lie: Where | None = None
        self._rng = rng

    def __call__(self, path: str, answer: Any) -> Any:
        kind = shape(path)
        self.heard.update((kind, way) for way in values(answer))
        if self.lie is None or self.lie[0] != kind:
            return answer
        try:
            return changed(answer, self.lie[1], self._rng)
        except (KeyError, IndexError, TypeError):
            return answer  # the answers to one kind of request differ


@pytest.fixture
def bob(lying: Place) -> Machine:
    """A machine with a clone that others have moved on from, and an edit of its own."""
    ann = lying.ann
    lying.write(ann, "a.txt", "one\ntwo\n")
    lying.write(ann, "d/b.bin", b"\0\1")
    ann.ok("push", "-m", "first")
    ann.ok("repo", "branch", "other")
    ann.ok("repo", "tag", "create", "v1")
    bob = lying.machine("bob")
    lying.write(ann, "a.txt", "one\ntwo\nthree\n")
    lying.write(ann, "c.txt", "new\n")
    ann.ok("push", "-m", "second")
    lying.write(bob, "a.txt", "mine\none\ntwo\n")
    return bob


def outside(place: Place) -> dict[str, bytes]:
    """What no command of bob's may touch."""
    return {
        str(path.relative_to(place.base)): path.read_bytes()
        for path in place.base.rglob("*")
        if path.is_file() and path.relative_to(place.base).parts[0] != "bob"
    }


def require_harmless(done: Ran, told: str) -> None:
    assert done.code in (0, 1, 2, 4), (told, done)
    assert "Traceback" not in done.err, (told, done.err)
    assert "something broke inside" not in done.err, (told, done.err)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", done.out + done.err), (told, done)
    if done.code:
        assert done.err.startswith("svc: "), (told, done.err)
        assert len(done.err.splitlines()) <= 4, (told, done.err)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_told_nonsense_ends_with_one_error(
    words: tuple[str, ...], lying: Place, liar: Liar, bob: Machine
) -> None:
    rng = random.Random(" ".join(words))
    kept = lying.base / "kept"
    shutil.copytree(bob.output, kept, symlinks=True)
    before = outside(lying)
    liar.twist = teller = Teller(rng)
    require_harmless(bob.run(*words), "the truth")
    for lie in rng.sample(sorted(teller.heard, key=repr), min(LIES_EACH, len(teller.heard))):
        shutil.rmtree(bob.output)
        shutil.copytree(kept, bob.output, symlinks=True)
        teller.lie = lie
        require_harmless(bob.run(*words), f"{words}: {lie}")
        assert outside(lying) == before, lie
        mine = [path.read_bytes() for path in bob.output.rglob("*") if path.is_file()]
        assert words[0] in ("restore", "switch") or any(b"mine\n" in one for one in mine), lie
        assert (bob.folder / ".svc").is_dir(), lie
    liar.twist = None
    shutil.rmtree(bob.output)
    shutil.copytree(kept, bob.output, symlinks=True)
    bob.ok("pull", "--merge")
    assert bob.files()["a.txt"] == b"mine\none\ntwo\nthree\n"


def test_a_clone_told_nonsense_writes_what_was_sealed_or_nothing(
    lying: Place, liar: Liar, bob: Machine
) -> None:
    rng = random.Random(3)
    liar.twist = teller = Teller(rng)
    before = outside(lying)
    target = bob.output / "again"
    bob.ok("repo", "clone", lying.repo, str(target), where=bob.output)
    sealed = {path.name: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    lies = sorted(teller.heard, key=repr)
    for lie in rng.sample(lies, min(rounds(8, 40), len(lies))):
        shutil.rmtree(target, ignore_errors=True)
        teller.lie = lie
        require_harmless(bob.run("repo", "clone", lying.repo, str(target), where=bob.output), str(lie))
        assert outside(lying) == before, lie
        for path in target.rglob("*"):
            if path.is_file() and ".svc" not in path.parts:
                assert sealed.get(path.name) == path.read_bytes(), lie


def test_a_push_told_nonsense_can_be_repeated(lying: Place, liar: Liar, bob: Machine) -> None:
    rng = random.Random(4)
    bob.ok("pull", "--merge")
    liar.twist = teller = Teller(rng)
    bob.ok("push", "-m", "truth")
    lies = sorted(teller.heard, key=repr)
    for number, lie in enumerate(rng.sample(lies, min(rounds(4, 25), len(lies)))):
        lying.write(bob, f"n{number}.txt", f"number {number}\n")
        teller.lie = lie
        require_harmless(bob.run("push", "-m", f"lie {number}"), str(lie))
        teller.lie = None
        wanted = bob.files()
        bob.ok("pull", "--merge")
        bob.ok("push", "-m", f"after {number}")
        assert set(wanted.values()) <= set(bob.files().values()), lie
    lying.ann.ok("pull")
    assert lying.ann.files() == bob.files()
