"""Large things: what is kept of a row that is not painted, and the rows themselves."""

from __future__ import annotations

import difflib
import random
import tracemalloc
from collections.abc import Sequence

import pytest

from localstore.core.model.history import ChangedFile
from tui.highlight import lines_of, plain
from tui.text import safe
from tui.widgets.lines import Item
from tui.widgets.patch import Key, Noted, Patches, Spot, texts
from tui.widgets.source import Source

MANY = 100_000


def changed(patch: str, path: str = "a.txt") -> ChangedFile:
    return ChangedFile(path=path, status="modified", binary=False, additions=1, deletions=1, patch=patch)


def large() -> ChangedFile:
    lines = (f"-old {n}\n+new {n}\n" if n % 2 else f" same {n}\n" for n in range(MANY))
    return changed(f"@@ -1,{MANY} +1,{MANY} @@\n" + "".join(lines))


def shown(rows: Sequence[Item] | Patches | Noted) -> list[str]:
    return ["".join(text for text, _ in item.left).rstrip() for item in rows]


def test_a_row_of_a_large_comparison_or_file_takes_a_few_bytes() -> None:
    file, text = large(), "value = 1\n" * MANY
    tracemalloc.start()
    try:
        rows = Patches([file])
        assert len(rows) == MANY * 3 // 2 + 2
        assert tracemalloc.get_traced_memory()[0] < 30 * len(rows)
        source = Source(plain(text))
        assert len(source) == MANY
        assert tracemalloc.get_traced_memory()[0] < 40 * len(rows)
    finally:
        tracemalloc.stop()


def test_the_rows_of_a_patch() -> None:
    file = changed("@@ -3,3 +3,3 @@ def f\n one\n-two\n+Two\n+more\n three\n\\ No newline at end of file\n")
    assert shown(Patches([file])) == [
        "modified a.txt  +1 −1",
        "            @@ -3,3 +3,3 @@ def f",
        "    3     3  one",
        "    4       -two",
        "          4 +Two",
        "          5 +more",
        "    5     6  three",
    ]
    assert shown(Patches([file], 14))[2:] == [
        "    3  one     │     3  one",
        "    4 -two     │     4 +Two",
        "               │     5 +more",
        "    5  three   │     6  three",
    ]
    assert shown(Patches([file], seen=["a.txt"])) == ["modified a.txt  +1 −1  ✓ seen"]


def test_changes_of_white_space_alone_are_left_out() -> None:
    file = changed("@@ -1,3 +1,3 @@\n-a b\n+a  b\n same\n-c\n+d\n@@ -9,1 +9,1 @@\n-x\n+x \n")
    assert shown(Patches([file], blanks=False))[1:] == [
        "            @@ -1,3 +1,3 @@",
        "    1     1  a  b",
        "    2     2  same",
        "    3       -c",
        "          3 +d",
    ]


@pytest.mark.parametrize("half", [0, 30])
@pytest.mark.parametrize("blanks", [True, False])
def test_every_row_is_found_by_its_key_and_holds_its_lines(half: int, blanks: bool) -> None:
    for seed in range(60):
        chance = random.Random(seed)
        files = [changed(patch(chance), f"{n}.txt") for n in range(3)]
        rows = Patches(files, half, blanks=blanks)
        notes = {
            Spot(file.path, "new", line.new): [Item(("note", file.path, line.new), (("said", "text"),))]
            for file in files
            for line in texts(file)
            if line.new and chance.random() < 0.2
        }
        for found in (rows, Noted(rows, notes)):
            for at, item in enumerate(found):
                assert found.place_of(item.key) == at
                assert isinstance(item.key, Key) or isinstance(found[at - 1].key, (Key, tuple))
            for kind, marks in found.marks.items():
                at_marks = [at for at, one in enumerate(found) if getattr(one.key, "kind", "") == kind]
                assert marks == at_marks
        if blanks:
            for file in files:
                numbers = [(key.old, key.new) for key in keys(rows) if key.path == file.path]
                wanted = [(line.old, line.new) for line in texts(file)]
                assert half or numbers == wanted


def keys(rows: Patches) -> list[Key]:
    found = [item.key for item in rows if isinstance(item.key, Key)]
    return [key for key in found if key.kind not in ("file", "hunk")]


def patch(chance: random.Random) -> str:
    old = [chance.choice(["x", "y ", "a b", "a  b", ""]) for _ in range(chance.randrange(30))]
    new = [line if chance.random() < 0.7 else f"{line} " for line in old if chance.random() < 0.9]
    return "\n".join(list(difflib.unified_diff(old, new, lineterm="", n=chance.randrange(4)))[2:])


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\n\n", "\n\na", "a\nb", "é\x1b\n\t"])
def test_the_lines_of_a_text(text: str) -> None:
    assert list(plain(text)) == [((safe(line), "text"),) for line in lines_of(text)]


def test_a_search_looks_in_the_line_and_not_in_its_number() -> None:
    source = Source(plain("a\nb\n12\n" + "x\n" * 20))
    assert [at for at in range(len(source)) if "12" in source.text_of(at)] == [2]
