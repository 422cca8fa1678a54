"""Trees and texts merge as git merges them; what git cannot compare is a conflict."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.diff.line_merge import merge_lines
from localstore.core.encoding import digest
from localstore.core.errors import TooLarge
from localstore.core.merge.base import Node, Relation, relation
from localstore.core.merge.three_way import (
    BASES_MAX,
    MergedTree,
    agreed,
    finish,
    merged_texts,
    plan,
    require_bases,
)
from localstore.core.tree.directory import TreeEntry
from scripts.campaign import tree_merges

Files = dict[str, bytes]
HISTORIES = 40


def entry(data: bytes | None) -> TreeEntry | None:
    if data is None:
        return None
    return TreeEntry("blob" if b"\0" in data else "text", digest(data), len(data))


def merged(base: Files, ours: Files, theirs: Files) -> MergedTree:
    changed = [
        {
            path: (entry(base.get(path)), entry(side.get(path)))
            for path in {*base, *side}
            if base.get(path) != side.get(path)
        }
        for side in (ours, theirs)
    ]
    contents = {digest(data): data for side in (base, ours, theirs) for data in side.values()}
    planned = plan(*changed)
    return finish(planned, dict(merged_texts(planned, contents)))


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_histories_merge_as_git_merges_them(tmp_path: Path, seed: int) -> None:
    verdict, why = tree_merges.check(tmp_path, seed)
    assert verdict != "wrong", why


def test_one_side_changed() -> None:
    found = merged({"a": b"1\n", "b": b"1\n"}, {"a": b"2\n", "b": b"1\n"}, {"a": b"1\n"})
    assert found.changes == {"b": None}
    assert found.conflicts == found.merged == []


def test_both_changed_other_lines() -> None:
    base = b"a\nb\nc\nd\ne\n"
    found = merged({"x": base}, {"x": base.replace(b"a", b"A")}, {"x": base.replace(b"e", b"E")})
    assert found.merged == ["x"]
    assert found.texts == {digest(b"A\nb\nc\nd\nE\n"): b"A\nb\nc\nd\nE\n"}
    assert found.changes == {"x": entry(b"A\nb\nc\nd\nE\n")}


def test_the_same_change_is_no_conflict_and_no_change() -> None:
    found = merged({"x": b"1\n"}, {"x": b"2\n"}, {"x": b"2\n"})
    assert found == MergedTree({}, {}, [], [])


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "conflicts"),
    [
        ({"x": b"1\n"}, {"x": b"2\n"}, {"x": b"3\n"}, ["x"]),
        ({"x": b"1\n2\n"}, {"x": b"0\n2\n"}, {"x": b"1\n3\n"}, ["x"]),  # touching lines
        ({"x": b"1\n"}, {}, {"x": b"2\n"}, ["x"]),
        ({"x": b"1\n"}, {"x": b"2\n"}, {}, ["x"]),
        ({}, {"x": b"1\n"}, {"x": b"2\n"}, ["x"]),
        ({"x": b"\0a"}, {"x": b"\0b"}, {"x": b"\0c"}, ["x"]),
        ({"x": b"a\n"}, {"x": b"\0b"}, {"x": b"b\n"}, ["x"]),
        ({}, {"x": b"1\n"}, {"x/y": b"1\n"}, ["x"]),
        ({}, {"x/y/z": b"1\n"}, {"x": b"1\n"}, ["x"]),
        ({"x/y": b"1\n"}, {"x": b"1\n"}, {"x/y": b"2\n"}, ["x", "x/y"]),
    ],
)
def test_conflicts(base: Files, ours: Files, theirs: Files, conflicts: list[str]) -> None:
    assert merged(base, ours, theirs).conflicts == conflicts
    assert merged(base, theirs, ours).conflicts == conflicts


def test_a_directory_takes_the_place_of_an_unchanged_file() -> None:
    found = merged({"x": b"1\n"}, {"x": b"1\n"}, {"x/y": b"1\n"})
    assert found.changes == {"x": None, "x/y": entry(b"1\n")}


def test_several_bases_that_disagree_conflict() -> None:
    one = MergedTree({"x": entry(b"1"), "y": None}, {}, [], [])
    other = MergedTree({"x": entry(b"2"), "y": None}, {}, [], ["z"])
    assert agreed([one, other]).conflicts == ["x", "z"]
    assert agreed([one, one]) == one


def test_too_many_bases() -> None:
    require_bases(range(BASES_MAX))
    with pytest.raises(TooLarge):
        require_bases(range(BASES_MAX + 1))


@pytest.mark.parametrize("side", [b"", b"x", b"x\n", b"\r\n", b"a\nb"])
def test_lines_of_one_side(side: bytes) -> None:
    assert merge_lines(b"a\n", b"a\n", side) == side
    assert merge_lines(b"a\n", side, b"a\n") == side


def relation_of(graph: dict[str, list[str]], ours: str, theirs: str) -> Relation:
    ranks: dict[str, int] = {}
    for name, above in graph.items():
        ranks[name] = 1 + max((ranks[one] for one in above), default=0)
    walk = relation(ours, theirs)
    wanted = next(walk)
    try:
        while True:
            wanted = walk.send({one: Node(ranks[one], graph[one]) for one in wanted})
    except StopIteration as end:
        found: Relation = end.value
        return found


def test_what_a_squash_names_is_an_ancestor() -> None:
    """b1 b2 were squashed as s; a branch that goes on from b2 meets the base at b2, not at the fork."""
    graph = {"f": [], "b1": ["f"], "b2": ["b1"], "c": ["b2"], "s": ["f", "b2"], "m": ["s"]}
    assert relation_of(graph, "m", "c").bases == ["b2"]
    assert relation_of({**graph, "s": ["f"]}, "m", "c").bases == ["f"]
    assert "c" not in relation_of(graph, "m", "c").common


def test_criss_cross_and_unrelated() -> None:
    graph = {"f": [], "a": ["f"], "b": ["f"], "x": ["a", "b"], "y": ["b", "a"], "o": []}
    assert sorted(relation_of(graph, "x", "y").bases) == ["a", "b"]
    assert relation_of(graph, "x", "o").bases == []
    assert relation_of(graph, "x", "x").bases == ["x"]
    assert relation_of(graph, "f", "x").bases == ["f"]
