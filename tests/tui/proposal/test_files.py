"""The files of a proposal: their tree, what is seen, and how changed lines are painted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events

from localstore.core.model.history import ChangedFile
from tests.svc.conftest import Svc
from tests.tui.test_app import open_proposal, press, project, sees, settle, soon
from tui.app import SvcApp
from tui.screens.code.changed_tree import Changes, TreeKey, TreeRows
from tui.screens.proposal.files import Files
from tui.screens.proposal.seen import digest_of
from tui.theme import THEMES
from tui.tints import DARK, DARK_256, tints
from tui.widgets.coloured_file import FileColours, functions_around
from tui.widgets.patch import Key, LineColours, Patches
from tui.widgets.words import changed_words

__all__ = ["project"]
Open = Callable[..., SvcApp]


def changed(path: str, patch: str | None = "@@ -1 +1 @@\n-a\n+b\n", **members: object) -> ChangedFile:
    given = {"status": "modified", "binary": False, "additions": 1, "deletions": 1, **members}
    return ChangedFile(path=path, patch=patch, **given)  # type: ignore[arg-type]


def rows_of(changes: Changes, folded: set[str], seen: set[str], threads: dict[str, int]) -> list[str]:
    rows = TreeRows(changes, folded, seen, threads)
    return [
        "".join(text for text, _ in (*rows[at].left, (" | ", ""), *rows[at].right)) for at in range(len(rows))
    ]


FILES = [
    changed("z.txt"),
    changed("src/deep/only/one.py", status="added", deletions=0),
    changed("src/deep/only/two.py", status="removed", additions=0),
    changed("src/app.py", status="renamed", old_path="src/old.py"),
    changed("src/logo.png", None, binary=True),
]


def test_a_tree_folds_folders_of_one_child_and_says_what_happened() -> None:
    changes = Changes(FILES)
    assert rows_of(changes, set(), {"src/deep/only/one.py"}, {"src/app.py": 2}) == [
        "  ▾ src | ",
        "    ▾ deep/only | ",
        "✓     A one.py | +1 ",
        "      D two.py | −1 ",
        "    R app.py ← old.py | ◆2 +1 −1 ",
        "    M logo.png | binary ",
        "  M z.txt | +1 −1 ",
    ]
    assert rows_of(changes, {"src"}, set(), {"src/app.py": 2, "z.txt": 1}) == [
        "  ▸ src | ◆2 4 files ",
        "  M z.txt | ◆1 +1 −1 ",
    ]
    whole = {"src/deep/only/one.py", "src/deep/only/two.py"}
    assert rows_of(changes, {"src/deep/only"}, whole, {})[1] == "✓   ▸ deep/only | 2 files "
    assert [changes.file(place).path for place in range(len(changes))] == [
        "src/deep/only/one.py",
        "src/deep/only/two.py",
        "src/app.py",
        "src/logo.png",
        "z.txt",
    ]


def test_the_name_of_a_file_comes_before_how_many_lines_changed() -> None:
    rows = TreeRows(Changes([changed("src/pool_big.py", additions=22, deletions=24)]), set(), set(), {})
    rows.room = 32
    assert "".join(text for text, _ in rows[1].right) == "+22 −24 "
    rows.room = 25
    assert "".join(text for text, _ in rows[1].right) == ""
    rows = TreeRows(Changes([changed("src/pool_big.py")]), set(), set(), {"src/pool_big.py": 3})
    rows.room = 25
    assert "".join(text for text, _ in rows[1].right) == "◆3 "


def test_every_row_of_a_tree_is_found_by_its_key() -> None:
    deep = "/".join("d" * 3000)
    many = [changed(f"{at % 40}/{at % 7}/{at}.py") for at in range(5000)] + [changed(f"{deep}/x")]
    changes = Changes(many)
    rows = TreeRows(changes, {"3", "5/1"}, set(), {})
    assert [rows.place_of(rows[at].key) for at in range(len(rows))] == list(range(len(rows)))
    assert rows.place_of(TreeKey("file", "3/0/3.py")) is None
    assert sorted(changes.order) == list(range(len(many)))


def test_only_what_changed_again_is_new() -> None:
    before = changed("a", "@@ -1,2 +1,2 @@ def f\n x\n-a\n+b\n")
    assert digest_of(before, "1") == digest_of(changed("a", "@@ -9,2 +11,2 @@ def g\n x\n-a\n+b\n"), "2")
    assert digest_of(before, "1") != digest_of(changed("a", "@@ -1,2 +1,2 @@ def f\n x\n-a\n+c\n"), "1")
    assert digest_of(changed("a", None), "1") != digest_of(changed("a", None), "2")


@pytest.mark.parametrize(
    ("old", "new", "gone", "come"),
    [
        ("return a + c", "return a * c", ["+"], ["*"]),
        ("f(a)", "f(a, wait=1)", [], [", wait=1"]),
        ("one two three four", "one 2 three 4", ["two", "four"], ["2", "4"]),
        ("same", "same", [], []),
        ("nothing is alike", "tout est autre", [], []),
        ("x" * 500, "x" * 499, [], []),
        ("", "new", [], []),
        ("    a b c d e f", "        a b c d e f", ["    "], ["        "]),
    ],
)
def test_the_words_that_changed(old: str, new: str, gone: list[str], come: list[str]) -> None:
    ranges = changed_words(old, new)
    assert [old[start:end] for start, end in ranges[0]] == gone
    assert [new[start:end] for start, end in ranges[1]] == come


PATCH = """@@ -1,4 +1,5 @@
 def f(a):
-    one(a)
-    two(a)
+    one(a, 1)
+    two(b)
+    three()
     end
"""


def pieces(rows: Patches, at: int) -> list[tuple[str, str]]:
    return [part for part in rows[at].left if part[0]]


def test_changed_lines_have_their_ground_and_words() -> None:
    rows = Patches([changed("a.py", PATCH)], look=LineColours(lambda: DARK, {}), heads=False)
    assert [rows[at].rest for at in range(len(rows))] == [
        "text",
        "text",
        *["on 33201f text"] * 2,
        *["on 1b2c21 text"] * 3,
        "text",
    ]
    assert pieces(rows, 4)[1:] == [
        ("+", "on 24462f add_mark"),
        ("    one(a", "on 1b2c21 text"),
        (", 1", "on 2f6a41 text"),
        (")", "on 1b2c21 text"),
    ]
    assert ("a", "on 833333 text") in pieces(rows, 3)
    assert pieces(rows, 6)[2:] == [("    three()", "on 1b2c21 text")]


def test_without_grounds_words_are_underlined() -> None:
    rows = Patches([changed("a.py", PATCH)], look=LineColours(lambda: None, {}), heads=False)
    assert pieces(rows, 4)[2:] == [("    one(a", "add"), (", 1", "under add_mark"), (")", "add")]
    assert rows[4].rest == "text"


def test_both_sides_show_what_changed() -> None:
    rows = Patches([changed("a.py", PATCH)], 30, look=LineColours(lambda: DARK, {}), heads=False)
    texts = [text for text, role in rows[3].left if role in ("on 833333 text", "on 2f6a41 text")]
    assert texts == ["a", "b"]
    middle = [role for text, role in rows[3].left if text in (" ", "│")]
    assert middle == ["on 33201f text", "line", "on 1b2c21 text"]
    assert rows[3].rest == "on 1b2c21 text" and rows[1].rest == "text", "up to the frame"
    assert all(sum(len(text) for text, _ in rows[at].left) == 63 for at in range(1, len(rows)))


def test_the_heading_of_a_hunk_names_its_function() -> None:
    text = "class A:\n    def f(self):\n" + "        x\n" * 20
    file = changed("a.py", "@@ -12,1 +12,1 @@\n-        y\n+        x\n")
    assert functions_around(file, text) == {12: "def f(self):"}
    known = {"a.py": FileColours(functions={12: "def f(self):"})}
    whole = changed("a.py", "@@ -12,2 +12,2 @@\n         x\n-        y\n+        x\n")
    rows = Patches([whole], look=LineColours(lambda: DARK, known), heads=False)
    assert "".join(text for text, _ in rows[0].left).strip() == "⋯ @@ -12,2 +12,2 @@  def f(self):"


def test_grounds_are_there_where_they_can_be_read() -> None:
    assert tints("dark", "256", None, False) is not None
    assert tints("terminal", "truecolor", False, False) is DARK
    assert tints("terminal", "256", None, False) is DARK_256, "most terminals are dark"
    for nothing in (
        tints("dark", "standard", None, False),
        tints("dark", "truecolor", None, True),
        tints("contrast", "truecolor", None, False),
    ):
        assert nothing is None
    assert THEMES["dark"]["on 22 keyword"].bgcolor is not None
    assert THEMES["dark"]["under add"].underline
    with pytest.raises(KeyError):
        THEMES["dark"]["on 22 nothing"]


# --- the screen


@pytest.fixture
def proposal(project: str, alice: Svc) -> str:
    """The repository with a proposal #1 of three files, one of which is moved."""
    Path("src/other.py").write_text("A = 1\n")
    Path("src/names.py").write_text("".join(f"NAME_{at} = {at}\n" for at in range(30)))
    assert alice("push", "-m", "Third").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/other.py").write_text("A = 2\n")
    Path("src/names.py").rename("src/more.py")
    Path("new.py").write_text("def added():\n    return 'zebra'\n")
    assert alice("push", "-m", "Fourth").code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Two", "-b", "Because.").code == 0
    return project


async def test_a_key_typed_before_the_changes_are_there_counts(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    """The focus stays where tab has put it, and c leads from the files to the first changed line."""
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        pilot.app.post_message(events.Key("enter", None))
        await soon(pilot, lambda: isinstance(pilot.app.screen, Files) and pilot.app.screen.focused)
        screen = pilot.app.screen
        assert isinstance(screen, Files)
        pilot.app.post_message(events.Key("tab", None))
        await soon(pilot, lambda: screen.diff.has_focus)
        await sees(pilot, "1 of 3 files, 0 seen")
        await settle(pilot)
        assert screen.diff.has_focus
        await press(pilot, "tab")
        assert screen.listing.has_focus
        assert "go to a line first" in await press(pilot, "c")  # the first file has none
        await press(pilot, "j")
        await sees(pilot, "M src/other.py", "+A = 2")
        assert "c again means this line" in await press(pilot, "c")
        assert screen.diff.has_focus and isinstance(screen.diff.key, Key) and screen.diff.key.kind != "hunk"


async def test_the_changes_follow_the_cursor_of_the_files(proposal: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter")
        await sees(pilot, "▾ src", "R more.py ← names.py", "its text is the same", "1 of 3 files, 0 seen")
        text = await press(pilot, "tab")
        assert "c comment" not in text and "x suggest" not in text, "it has no lines"
        await press(pilot, "f", "j")
        await sees(pilot, "M src/other.py", "2 of 3 files", "+A = 2")
        await press(pilot, "m")
        await sees(pilot, "1/3 seen", "✓   M other.py", "A new.py", "+def added():", "3 of 3 files, 1 seen")
        await press(pilot, "left_curly_bracket")
        await sees(pilot, "M src/other.py  +1 −1  ✓ seen", "hunk 1 of 1")
        await press(pilot, "slash", *"zebra", "enter")
        await sees(pilot, "nothing matches")  # it looks among the files, which have the focus
        await press(pilot, "escape", "tab", "slash", *"zebra", "enter")
        await sees(pilot, "+    return 'zebra'", "3 of 3 files")
        screen = pilot.app.screen
        assert isinstance(screen, Files)
        assert screen.diff.key == Key("new.py", "add", 0, 2)
        await press(pilot, "f")
        assert screen.listing.has_focus
        await press(pilot, "g", "m")
        await sees(pilot, "2/3 seen", "✓ ▾ src")
    Path("src/other.py").write_text("A = 3\n")
    assert alice("push", "-m", "Fifth").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter")
        await sees(pilot, "── M src/other.py  +1 −1", "+A = 3", "2 of 3 files, 1 seen")
        await press(pilot, "right_curly_bracket")
        await sees(pilot, "── A new.py  +2", "+def added():")
        await press(pilot, "f")
        text = await sees(pilot, "✓   R more.py ← names.py", "    M other.py")
        assert "def added" not in text
        await press(pilot, "k", "enter")
        await sees(pilot, "── M src/other.py", "+A = 3")


async def test_both_sides_take_the_room_of_the_files(proposal: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter", "j")
        await sees(pilot, "▾ src", "+A = 2")
        await press(pilot, "v")
        text = await sees(pilot, "1 -A = 1", "f shows the files, which made room")
        screen = pilot.app.screen
        assert isinstance(screen, Files) and screen.diff.has_focus
        assert "▾ src" not in text
        left, right = text.index("A = 1"), text.index("A = 2")
        assert "\n" not in text[left:right] and right - left > 40
        await press(pilot, "P")
        await sees(pilot, "old and new take the room of the files")
        await press(pilot, "f")
        text = await sees(pilot, "▾ src", "R more.py")
        assert screen.listing.has_focus and "A = 1" not in text
        await press(pilot, "enter")
        await sees(pilot, "1 -A = 1")
        await press(pilot, "v")
        await sees(pilot, "▾ src", "+A = 2")
        await press(pilot, "v")
        await pilot.resize_terminal(80, 24)
        text = await sees(pilot, "-A = 1", "+A = 2")
        assert "│" not in text, "one column, because there is no room for two"


async def test_both_sides_are_refused_where_they_cannot_be_read(proposal: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter", "v")
        text = await sees(pilot, "side by side needs 87 columns, and the terminal has 80")
        assert "│" not in text


async def test_a_note_stands_on_the_side_of_its_line(proposal: str, alice: Svc, open_app: Open) -> None:
    on = ("pr", "comment", "1", "--path", "src/other.py", "--line", "1")
    assert alice(*on, "--side", "old", "-b", "It was one").code == 0
    assert alice(*on, "-b", "It is two").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter", "j")
        text = await sees(pilot, "It was one", "It is two", "2 open threads", "◆2 +1 −1 ")
        assert column(text, "It was one") == column(text, "It is two")
        await press(pilot, "v")
        text = await sees(pilot, "It was one", "It is two")
        assert column(text, "It was one") < column(text, "A = 2") - 9
        assert column(text, "It is two") >= column(text, "A = 2")


def column(text: str, words: str) -> int:
    return next(row for row in text.splitlines() if words in row).index(words)


async def test_keys_that_come_before_a_tab_is_there_are_carried_out(proposal: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        pilot.app.press("3")  # type: ignore[attr-defined]
        pilot.app.press("p")  # type: ignore[attr-defined]
        await sees(pilot, "Proposals open · 1")


async def test_all_of_a_very_long_file_is_there_once_the_cursor_is_in_it(
    project: str, alice: Svc, open_app: Open
) -> None:
    lines = 12_000
    Path("a.txt").write_text("".join(f"line {at}\n" for at in range(lines)))
    assert alice("push", "-m", "Third").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("a.txt").write_text("".join(f"line {at}, changed\n" for at in range(lines)))
    Path("b.txt").write_text("more\n")
    assert alice("push", "-m", "Fourth").code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Long", "-b", "Because.").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because.")
        await press(pilot, "enter")
        await sees(pilot, "1 of 2 files", "line 0")
        await press(pilot, "j")
        await sees(pilot, "2 of 2 files", "+more")
        await press(pilot, "k")
        await sees(pilot, "1 of 2 files", "line 0")
        screen = pilot.app.screen
        assert isinstance(screen, Files)
        assert len(screen.diff.rows) < lines
        await press(pilot, "m", "left_curly_bracket", "enter")
        assert len(screen.diff.rows) > 2 * lines
        await sees(pilot, "✓ seen")
