"""A file that one side moved takes what the other side did to it along, as in git."""

from __future__ import annotations

from pathlib import Path

import pytest

from localstore.core.encoding import digest
from localstore.core.merge import moves
from localstore.core.merge.moves import Moves, searches
from localstore.core.merge.three_way import MergedTree, finish, merged_texts, plan
from localstore.core.tree.read import Change
from scripts.campaign import tree_merges
from tests.localstore.core.merge.test_three_way import Files, entry

HISTORIES = 24
PAGE = b"".join(b"line %d\n" % n for n in range(1, 20))
TOP, END = PAGE.replace(b"line 1\n", b"ONE\n"), PAGE.replace(b"line 19\n", b"NINETEEN\n")
BOTH = TOP.replace(b"line 19\n", b"NINETEEN\n")


def changes(base: Files, side: Files) -> dict[str, Change]:
    return {
        path: (entry(base.get(path)), entry(side.get(path)))
        for path in {*base, *side}
        if base.get(path) != side.get(path)
    }


def merged(base: Files, ours: Files, theirs: Files) -> MergedTree:
    sides = changes(base, ours), changes(base, theirs)
    contents = {digest(data): data for side in (base, ours, theirs) for data in side.values()}
    found = Moves(*(search.pairs(contents) for search in searches(*sides)))
    planned = plan(*sides, found)
    return finish(planned, dict(merged_texts(planned, contents)))


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_random_histories_with_moves_merge_as_git_merges_them(tmp_path: Path, seed: int) -> None:
    verdict, why = tree_merges.check(tmp_path, seed, moves=True)
    assert verdict != "wrong", why


def test_a_move_and_an_edit_land_both_whoever_made_which() -> None:
    base = {"a": PAGE}
    found = merged(base, {"a": TOP}, {"b": END})
    assert found.changes == {"a": None, "b": entry(BOTH)}
    assert (found.merged, found.conflicts) == (["b"], [])
    found = merged(base, {"b": END}, {"a": TOP})
    assert found.changes == {"b": entry(BOTH)}
    found = merged(base, {"b": PAGE}, {"a": TOP})
    assert found.changes == {"b": entry(TOP)}
    assert found.merged == []


@pytest.mark.parametrize(
    ("ours", "theirs", "conflicts"),
    [
        ({"b": PAGE}, {"b": PAGE}, []),
        ({"b": TOP}, {"b": END}, []),
        ({"b": PAGE}, {"c": PAGE}, ["a", "b", "c"]),
        ({"b": PAGE}, {}, ["b"]),
        ({"b": TOP}, {"a": PAGE.replace(b"line 1\n", b"1\n")}, ["b"]),
        ({"b": PAGE}, {"a": TOP, "b": b"another\n"}, ["b"]),
        ({"b": PAGE}, {"a": PAGE, "b": b"another\n"}, ["b"]),
        ({"b/c": PAGE}, {"a": TOP, "b": b"another\n"}, ["b"]),
    ],
)
def test_what_is_a_conflict(ours: Files, theirs: Files, conflicts: list[str]) -> None:
    assert merged({"a": PAGE}, ours, theirs).conflicts == conflicts
    assert merged({"a": PAGE}, theirs, ours).conflicts == conflicts


def test_bytes_move_whole_and_empty_files_do_not() -> None:
    found = merged({"a": b"\0x"}, {"a": b"\0y"}, {"b": b"\0x"})
    assert found.changes == {"a": None, "b": entry(b"\0y")}
    assert merged({"a": b""}, {"a": b"1\n"}, {"b": b""}).conflicts == ["a"]


def test_beyond_the_limit_only_equal_bytes_have_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "RENAME_PAIRS", 0)
    assert merged({"a": PAGE}, {"a": TOP}, {"b": END}).conflicts == ["a"]
    assert merged({"a": PAGE}, {"a": TOP}, {"b": PAGE}).changes == {"a": None, "b": entry(TOP)}
