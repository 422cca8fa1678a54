"""The cache of what filtered views of trees name."""

from __future__ import annotations

from blake3 import blake3

from relay.memory.named import Key, Named, NamedTrees


def digests(count: int, seed: str = "") -> list[bytes]:
    return [blake3(f"{seed}{number}".encode()).digest() for number in range(count)]


def key(number: int, root: int = 0) -> Key:
    return "repo", number, bytes([root]) * 32


def test_a_tree_names_its_files_and_no_others() -> None:
    inside = digests(1000)
    named = Named([*inside, *inside[:10]], ())
    assert all(one in named for one in inside)
    assert not any(one in named for one in digests(1000, "other"))
    assert bytes(32) not in named
    assert b"\xff" * 32 not in named
    assert bytes(32) not in Named((), ())


def test_digests_that_begin_alike_are_told_apart() -> None:
    first = b"\7" * 8
    alike = [first + bytes([end]) * 24 for end in range(0, 40, 2)]
    named = Named(alike, ())
    assert all(one in named for one in alike)
    assert not any(first + bytes([end]) * 24 in named for end in range(1, 40, 2))
    assert first not in named


def test_the_large_file_that_was_asked_for_comes_first() -> None:
    large = sorted(digests(3))
    named = Named(large, large)
    named.ask_first(large[2])
    named.ask_first(digests(1, "no file of this tree")[0])
    assert list(named.large) == [large[2], large[0], large[1]]


def test_the_trees_asked_for_last_are_kept() -> None:
    one = Named(digests(100), ())
    trees = NamedTrees(most=3 * one.size)
    for number in range(3):
        trees.put(key(number), Named(digests(100), ()))
    assert trees.get(key(0)) is not None
    trees.put(key(3), Named(digests(100), ()))
    trees.put(key(3), Named(digests(100), ()))
    assert [number for number in range(4) if trees.get(key(number))] == [0, 2, 3]
    trees.put(key(4), Named(digests(400), ()))
    assert trees.get(key(4)) is None
    assert trees.get(key(0)) is not None
    assert trees.get(key(0, root=1)) is None
