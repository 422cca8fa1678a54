"""Large things: what is kept of a row that is not painted, what making it takes, and the rows themselves."""

from __future__ import annotations

import difflib
import random
import tracemalloc
from collections.abc import Sequence

import msgspec
import pytest
from pygments import lex
from textual.geometry import Region
from textual.message import Message

from localstore.core.model.base import Actor
from localstore.core.model.check import Rollup
from localstore.core.model.history import ChangedFile
from localstore.core.model.issue import Reactions
from localstore.core.model.proposal import HeadRepo, Proposal, Reviewer, ThreadCounts
from tests.depth import rounds
from tui.highlight import colour_text, plain
from tui.lexing import lexer_of, role_of
from tui.listed import ListedProposal, as_rows
from tui.text import WINDOW, lines_of, safe, starts, windows
from tui.widgets.hunks import texts
from tui.widgets.lines import Item, Lines
from tui.widgets.made import LazyRows
from tui.widgets.patch import Key, NotedRows, Patches, Spot
from tui.widgets.source import Source

MANY = 100_000


def changed(patch: str, path: str = "a.txt") -> ChangedFile:
    return ChangedFile(path=path, status="modified", binary=False, additions=1, deletions=1, patch=patch)


def large(count: int = MANY) -> ChangedFile:
    lines = (f"-old {n}\n+new {n}\n" if n % 2 else f" same {n}\n" for n in range(count))
    return changed(f"@@ -1,{count} +1,{count} @@\n" + "".join(lines))


def shown(rows: Sequence[Item] | Patches | NotedRows) -> list[str]:
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


@pytest.mark.parametrize("half", [0, 60])
@pytest.mark.parametrize("blanks", [True, False])
def test_the_rows_of_a_large_comparison_are_made_without_all_its_lines(half: int, blanks: bool) -> None:
    count = rounds(MANY // 5, MANY)
    file = large(count)
    tracemalloc.start()
    try:
        Patches([file], half, blanks=blanks)
        assert tracemalloc.get_traced_memory()[1] < 100 * count * 3 // 2
    finally:
        tracemalloc.stop()


def test_a_coloured_text_takes_little_more_than_its_letters() -> None:
    text = "def f(x: int) -> str:\n    return str(x + 1)  # why\n" * 300
    colour_text(text, "a.py")  # the lexer is imported
    tracemalloc.start()
    try:
        found = colour_text(text, "a.py")
        assert found is not None
        assert len(found) == 600
        assert tracemalloc.get_traced_memory()[0] < 6 * len(text)
    finally:
        tracemalloc.stop()


def test_a_text_of_very_many_lines_is_not_coloured() -> None:
    assert colour_text("x = 1\n" * MANY, "a.py") is None
    assert colour_text("x = 1\n" * 10, "a.py") is not None


@pytest.mark.parametrize(
    "text", ["", "\n", "a = 1", "a\r\n\tb\r\n", "\ufeffa\n", "'''\nx\n\n'''\n", "\x1b é\n" * 3, "a\n\n"]
)
def test_the_lines_of_a_coloured_text(text: str) -> None:
    lexer = lexer_of("a.py")
    assert lexer is not None
    lines: list[list[tuple[str, str]]] = [[]]
    for token, piece in lex(text, lexer):
        for letter in piece:
            if letter == "\n":
                lines.append([])
            else:
                lines[-1] += [(one, role_of(token)) for one in safe(letter)]
    if len(lines) > 1 and not lines[-1]:
        lines.pop()
    found = colour_text(text, "a.py")
    assert found is not None
    assert [[(one, role) for part, role in line for one in part] for line in found] == lines


@pytest.mark.parametrize("length", [WINDOW - 1, WINDOW, WINDOW + 1, 2 * WINDOW + 1])
@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\na"])
def test_lines_begin_where_they_do_in_texts_of_several_windows(length: int, end: str) -> None:
    for text in ("x" * length + end, "xyz\n" * (length // 4) + "x" * (length % 4) + end):
        assert list(starts(text)) == [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
        assert [line for _, lines in windows(text) for line in lines] == text.split("\n")


def proposal(number: int) -> Proposal:
    who = Actor(id="0192f0a0-0000-7000-8000-000000000000", handle="alice")
    return Proposal(
        number=number,
        title=f"retry the upload {number}",
        body="It hangs.\n" * 100,
        state="open",
        draft=False,
        author=who,
        head=f"t{number}",
        base="main",
        head_repo=HeadRepo(id=who.id, full_name="alice/app"),
        head_seal="a" * 64,
        base_seal="b" * 64,
        merge_base="c" * 64,
        version=1,
        assignees=[],
        labels=[],
        reactions=Reactions(),
        comments=0,
        reviewers=[Reviewer(who=who, state="approved", seal_id="a" * 64)],
        reviews=[],
        checks=Rollup(),
        threads=ThreadCounts(),
        merge_state="clean",
        blocked_by=[],
        depends_on=[],
        closes=[],
        created_at="2026-01-01T00:00:00Z",
        updated_at="2026-01-01T00:00:00Z",
    )


def test_a_listed_proposal_takes_a_few_hundred_bytes() -> None:
    json = msgspec.json.encode(as_rows(map(proposal, range(1000)), ListedProposal))
    tracemalloc.start()
    try:
        found = msgspec.json.decode(json, type=list[ListedProposal])
        assert tracemalloc.get_traced_memory()[0] < 900 * len(found)
    finally:
        tracemalloc.stop()
    assert found == as_rows(map(proposal, range(1000)), ListedProposal)
    assert found[7].author.handle == "alice"
    assert [verdict.state for verdict in found[7].reviewers] == ["approved"]


class Found(Lines):
    """A list outside of an app."""

    def refresh(self, *regions: Region, **what: bool) -> Found:
        return self

    def post_message(self, message: Message) -> bool:
        return True


def test_a_filter_makes_no_rows() -> None:
    made: list[int] = []

    def row(value: int) -> Item:
        made.append(value)
        return Item(value, ((f"number {value}", "text"),))

    lines = Found()
    lines.show(LazyRows(range(MANY), row, lambda value: value, str, [Item(None, (("99 title", "title"),))]))
    lines.filter("99 9")
    assert lines.rows[0].key == 99
    assert lines.rows[2].key == 299
    assert len(lines.rows) == sum("99" in str(value) for value in range(MANY))
    lines.go_to(1099)
    assert lines.key == 1099
    lines.filter("")
    assert (lines.key, len(lines.rows)) == (1099, MANY + 1)
    assert len(made) < 30


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
        for found in (rows, NotedRows(rows, notes)):
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
