"""Partial trees: what is seen of a tree, with the digests of the rest."""

from __future__ import annotations

import random
from collections.abc import Callable

from localstore.core import tree
from localstore.core.encoding import digest
from localstore.core.tree import TreeEntry
from localstore.core.tree.partial import name_of
from localstore.core.tree.policy import Policy

KEY, OTHER = b"k" * 32, b"o" * 32
NAMES = ["ash", "birch", "cedar", "dogwood", "elm"]


def random_path(chance: random.Random) -> str:
    return "/".join(chance.choice(NAMES) for _ in range(chance.randint(1, 4)))


def random_files(chance: random.Random) -> dict[str, TreeEntry]:
    files: dict[str, TreeEntry] = {}
    for _ in range(chance.randint(0, 30)):
        path = random_path(chance) + f"{chance.randint(0, 3)}.txt"
        files[path] = TreeEntry("text", digest(path.encode()), chance.randint(0, 1000))
    return files


def random_policy(chance: random.Random) -> Policy:
    rules = {"" if chance.random() < 0.1 else random_path(chance): "private" for _ in range(3)}
    rules |= {random_path(chance): "open" for _ in range(2)}
    rules |= dict.fromkeys(random_files(chance), "private")
    return Policy(1, rules)  # type: ignore[arg-type]


def test_random_trees_in_part() -> None:
    """The files that are seen, and no others; the signed root from what is left; no hidden name in it."""
    met = 0
    for seed in range(300):
        chance = random.Random(seed)
        files = random_files(chance)
        whole = tree.build(files, KEY)
        stored = dict(whole.directories)
        root = whole.root
        seen = dict(files)
        for _ in range(chance.randint(1, 2)):  # a fork, and a fork of that
            policy = random_policy(chance)
            parting = tree.Parting(policy)
            before = root
            root = tree.run(tree.part(before, KEY, parting), _of(stored))
            stored |= parting.written
            seen = {path: file for path, file in seen.items() if policy.sees(path)}
            assert all(name_of(raw) == name for name, raw in parting.written.items())
        found = tree.run(tree.walk(root), _of(stored))
        assert found == dict(sorted(seen.items())), seed
        assert tree.run(tree.find_signed_digest(root, {}), _of(stored)) == whole.root, seed
        opaque = tree.run(tree.hidden_entries(root), _of(stored))
        assert tree.root_digest(seen, KEY, opaque) == whole.root, seed
        assert bool(opaque) is (seen != files)
        assert (root == whole.root) is (seen == files)
        met += seen != files
        names = {path.rpartition("/")[2] for path in files.keys() - seen.keys()}
        names -= {path.rpartition("/")[2] for path in seen}
        reached = reached_from(root, stored)
        assert not [name for name in names if any(name.encode() in raw for raw in reached)], seed
    assert met > 100


def reached_from(root: bytes, stored: dict[bytes, bytes]) -> list[bytes]:
    found: list[bytes] = []
    left = [root] if root != tree.EMPTY_ROOT else []
    while left:
        found.append(stored[left.pop()])
        left += [child.digest for child in tree.decode(found[-1]).children if child.kind == "dir"]
    return found


def test_the_next_tree_under_another_key_keeps_the_digests() -> None:
    files = {"a/seen.txt": TreeEntry("text", b"1" * 32, 1), "a/hidden.txt": TreeEntry("text", b"2" * 32, 2)}
    whole = tree.build({**files, "b/c.txt": TreeEntry("blob", b"3" * 32, 3)}, KEY)
    parting = tree.Parting(Policy(1, {"a/hidden.txt": "private", "b": "private"}))
    root = tree.run(tree.part(whole.root, KEY, parting), _of(whole.directories))
    stored = {**whole.directories, **parting.written}
    opaque = tree.run(tree.hidden_entries(root), _of(stored))
    assert {path: len(own) for path, own in opaque.items()} == {"": 1, "a": 1}
    new = {"a/seen.txt": None, "b": TreeEntry("text", b"4" * 32, 4)}
    made = tree.run(tree.rebuild(root, new, OTHER), _of(stored))
    stored |= made.directories
    assert tree.run(tree.hidden_entries(made.root), _of(stored)) == opaque
    assert tree.root_digest({"b": TreeEntry("text", b"4" * 32, 4)}, OTHER, opaque) == made.root
    more = {"a/more.txt": TreeEntry("text", b"5" * 32, 5)}
    after = tree.run(tree.update(made.root, more, OTHER), _of(stored))
    stored |= after.directories
    assert tree.run(tree.hidden_entries(after.root), _of(stored)) == opaque


def _of(stored: dict[bytes, bytes]) -> Callable[[list[bytes]], dict[bytes, bytes]]:
    return lambda wanted: stored
