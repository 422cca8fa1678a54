"""The tab Code as one looks at it: its tree, blame, history, seals, and what a search finds."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

from localstore.core.model.history import ChangedFile
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle, soon
from tui import contents
from tui.app import SvcApp
from tui.changed import GLIMPSE
from tui.screens.code import code
from tui.screens.code.seal import SealScreen
from tui.screens.repo import RepoScreen
from tui.tints import DARK_256
from tui.widgets.coloured_file import colours_of
from tui.widgets.diff import Diff
from tui.widgets.lines import mark_found
from tui.widgets.patch import LineColours, Patches, divide_note

__all__ = ["project"]
Open = Callable[..., SvcApp]
PATCH = "@@ -1,4 +1,5 @@\n-a = 1\n+b = 2\n+c = 3\n def f():\n     return 1\n # end\n"


def changed(status: str, patch: str) -> ChangedFile:
    return ChangedFile(path="a.py", status=status, patch=patch, binary=False, additions=1, deletions=1)  # type: ignore[arg-type]


async def opened(pilot: Pilot[None], *keys: str) -> str:
    """Open the only repository, and press these keys in its tab Code."""
    await settle(pilot)
    await press(pilot, "enter", "2")
    await sees(pilot, "src/")
    return await press(pilot, *keys)


# --- rows


def test_both_sides_have_the_colours_of_lines_that_moved() -> None:
    file = changed("modified", PATCH)
    look = LineColours(
        lambda: DARK_256, {"a.py": colours_of(file, "b = 2\nc = 3\ndef f():\n    return 1\n# end\n")}
    )
    rows = Patches([file], 40, look=look, heads=False)
    moved = next(rows[at].left for at in range(len(rows)) if "return" in str(rows[at].left))
    sides = [[role for text, role in half if "return" in text] for half in (moved[:6], moved[6:])]
    assert sides == [["keyword"], ["keyword"]]


def test_added_and_removed_files_have_one_column_of_numbers() -> None:
    patches = {"added": "@@ -0,0 +1 @@\n+b\n", "removed": "@@ -1 +0,0 @@\n-a\n", "modified": PATCH}
    widths = {}
    for status, patch in patches.items():
        rows = Patches([changed(status, patch)], look=LineColours(lambda: DARK_256, {}), heads=False)
        widths[status] = len(rows[1].left[0][0])
    assert widths == {"added": 3, "removed": 3, "modified": 6}


def test_the_line_between_both_sides_goes_on_beside_a_note() -> None:
    card = ("╭─ open ─╮", "accent")
    for side, left in (("new", 20), ("old", 3)):
        parts = divide_note(((" " * left, "text"), card), 15, side)  # type: ignore[arg-type]
        text = "".join(words for words, _ in parts)
        assert text.index("│", 0) == 16
        assert text.index("╭") == left


def test_what_a_search_finds_is_marked_in_the_text_alone() -> None:
    parts = ((" 12 ", "gutter"), ("def ", "keyword"), ("undefined", "on 235 name"), (" 12", "text"))
    assert mark_found(parts, "def") == (
        (" 12 ", "gutter"),
        ("def", "found keyword"),
        (" ", "keyword"),
        ("un", "on 235 name"),
        ("def", "found name"),
        ("ined", "on 235 name"),
        (" 12", "text"),
    )
    assert mark_found(parts, "12")[-1] == ("12", "found text")
    assert mark_found(parts, "12")[0] == (" 12 ", "gutter")
    across = mark_found((("ab", "text"), ("cd", "name")), "bc")
    assert across == (("a", "text"), ("b", "found text"), ("c", "found name"), ("d", "name"))
    assert mark_found(parts, "nothing") == parts


# --- screens


async def test_folders_unfold_in_place(project: str, alice: Svc, open_app: Open) -> None:
    Path("src/deep").mkdir()
    Path("src/deep/one.py").write_text("A = 1\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        assert "main.py" not in await opened(pilot, "g")
        text = await press(pilot, "right")
        assert "▾ src/" in text and "  ▸ deep/" in text and "main.py" in text and "README.md" in text
        text = await press(pilot, "j", "l")
        assert "one.py" in text and "▾ deep/" in text
        await press(pilot, "j", "j", "l")
        await sees(pilot, "src/main.py", "return 2")
        await press(pilot, "escape", "left")
        text = await press(pilot, "left")
        assert "▸ src/" in text and "main.py" not in text and "one.py" not in text
        assert "../" in await press(pilot, "enter")
        assert "▸ src/" in await press(pilot, "left")


async def test_a_folder_is_previewed_with_sizes(project: str, alice: Svc, open_app: Open) -> None:
    Path("src/large.txt").write_text("x" * 3000)
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "g")
        text = await sees(pilot, "src/ · 2 files, 3.0 KiB", "2.9 KiB")
        assert "╭─ project ─" in text and " 1 of 3 ─╯" in text


async def test_the_row_above_a_folder_and_a_large_file_replace_what_was_previewed(
    project: str, alice: Svc, open_app: Open
) -> None:
    """What the pane shows is always what is under the cursor: the folder above for `../`, the size of a file
    that is too large, and never the file that the cursor was on before."""
    Path("src/large.txt").write_text("x" * 300_000)
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "g", "enter")
        await sees(pilot, "../", "large.txt", "main.py")
        await press(pilot, "G")
        await sees(pilot, "src/main.py", "return 2")
        await press(pilot, "g")
        text = await sees(pilot, "project/ · 1 folder")
        assert "return 2" not in text and "▸ src/" in text
        await press(pilot, "j")
        await sees(pilot, "src/large.txt · 293.0 KiB", "not previewed; enter opens it")
        await press(pilot, "j", "h")
        await sees(pilot, "history")
        await press(pilot, "escape", "g")
        await sees(pilot, "project/ · 1 folder")


@pytest.mark.parametrize("rest", [0.01, 3600.0])
async def test_keys_are_about_the_row(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch, rest: float
) -> None:
    """Before the preview of the row as after it. Esc leads back to the row."""
    monkeypatch.setattr(code, "REST", rest)
    Path("src/other.py").write_text("A = 1\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "g", "enter")
        await sees(pilot, "../", "main.py", "other.py")
        for key, seen in (
            ("h", "history of src/main.py"),
            ("B", "src/main.py · First"),
            ("left_square_bracket", "return 1"),
        ):
            await pilot.press("g", "j")
            if rest < 1:
                await sees(pilot, "src/main.py", "return 2")
            await pilot.press(key)
            await sees(pilot, seen)
            if key != "left_square_bracket":
                await pilot.press("escape" if key == "h" else key)
                await sees(pilot, "../")
                await pilot.press("G")
                await sees(pilot, " 3 of 3 ─╯")


async def test_a_text_too_large_to_show_says_so(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[str] = []
    monkeypatch.setattr(code, "copy", lambda of, text: copied.append(text))
    Path("src/large.txt").write_text("a line\n" * 1_400_000)
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "t", *"readme", "enter")
        await sees(pilot, "Read me.")
        await press(pilot, "t", *"large", "enter")
        text = await sees(pilot, "src/large.txt · 9.3 MiB", "too large to show")
        assert "1 line" not in text
        await press(pilot, "y")
        assert copied == ["src/large.txt"], "no line of the text that was open before"
        await press(pilot, "e")
        await sees(pilot, "more than 1 MiB: change it with your editor")


async def test_a_file_says_where_one_is_in_it_and_a_search_what_it_found(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("long.txt").write_text("".join(f"line {n} {'pool' if n % 4 == 0 else ''}\n" for n in range(1, 41)))
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "t", *"long", "enter")
        await sees(pilot, "long.txt · 40 lines", " 1 of 40 ─╯")
        await press(pilot, "slash", *"pool", "enter")
        await sees(pilot, "1 of 10 ", " 4 of 40 ─╯")
        assert "2 of 10 " in await press(pilot, "n")
        assert "10 of 10 " in await press(pilot, "N", "N")
        await press(pilot, "slash", *"nowhere", "enter")
        await sees(pilot, "nothing matches")


async def test_a_very_wide_screen_has_facts_about_the_file_or_folder(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(200, 40)) as pilot:
        await opened(pilot, "g", "j")
        text = await sees(pilot, "README.md", "╭─ facts ─", "last seal", "changed by", "history · 1", "First")
        assert f"@{project.partition('/')[0]}"[:30] in text
        await press(pilot, "k")
        await sees(
            pilot, "src/ · ", "╭─ facts ─", "below it", "1 file", "kinds", "py  ", "history · 2", "Second"
        )
        await press(pilot, "h")
        assert "╭─ facts ─" not in await sees(pilot, "history of")
        await press(pilot, "escape")
        await pilot.resize_terminal(140, 40)
        assert "╭─ facts ─" not in await settle(pilot)


async def test_a_file_is_found_with_its_text_beside_it(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 40)) as pilot:
        await opened(pilot, "t", *"main")
        await sees(pilot, "find file", "│ src/main.py", "return 2")


async def test_blame_has_whole_seals_where_there_is_room_and_short_ages(project: str, open_app: Open) -> None:
    app = open_app()
    app.clock = lambda: 4e9  # long after the seals
    async with app.run_test(size=(120, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        head = app.screen.seal  # type: ignore[attr-defined]
        text = await press(pilot, "B")
        row = next(row for row in text.splitlines() if "return 2" in row)
        assert f" {head[:8]} " in row and " ago" not in row and re.search(r" \d{4}-\d\d +return", row)
        await pilot.resize_terminal(80, 24)
        await press(pilot, "B")
        text = await press(pilot, "B")
        assert f" {head[:4]} " in next(row for row in text.splitlines() if "return 2" in row)


@pytest.mark.parametrize("width", [80, 120])
async def test_blame_opens_seals(project: str, open_app: Open, width: int) -> None:
    async with open_app().run_test(size=(width, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        text = await sees(pilot, "return 2", "2 lines")
        assert "enter its seal" not in text
        await press(pilot, "B")
        text = await sees(pilot, "First", "enter its seal  B end blame  h history", "esc back")
        assert "Second" not in text
        await press(pilot, "j")
        text = await sees(pilot, "Second", "enter its seal")
        assert "First" not in text
        await press(pilot, "enter")
        await sees(pilot, "/project  seal ", "Second", "✓ signed", "+    return 2")
        await press(pilot, "escape", "B")
        text = await sees(pilot, "return 2", "2 lines")
        assert "enter its seal" not in text and "Second" not in text
        await press(pilot, "enter")
        await sees(pilot, "return 2", "2 lines")


async def test_without_a_preview_the_history_is_of_the_file_under_the_cursor(
    project: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await press(pilot, "G")
        await press(pilot, "h")
        await sees(pilot, " history of data.bin · main")
        assert "▌  data.bin" in await press(pilot, "escape")
        await press(pilot, "k", "B")
        text = await sees(pilot, " README.md")
        assert "Read me." in text and re.search(r"\b[0-9a-f]{4,8}\b", text)
        await press(pilot, "escape", "G")
        await press(pilot, "g")
        await press(pilot, "h")
        await sees(pilot, " history of project · main")


async def test_a_history_says_of_what_it_is_and_what_a_seal_says(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("src/main.py").write_text("def main():\n    return 3\n")
    assert alice("push", "-m", "Third\n\nBecause two was too few.").code == 0
    assert alice("repo", "tag", "create", "v1").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter", "h")
        text = await sees(
            pilot,
            "─ history of src/main.py · main ─",
            "(main) Third",
            "Because two was too few.",
            "✓ signed",
        )
        assert "(v1)" in text and "+    return 3" in text and " 1 of 3 ─╯" in text
        assert text.count("╭") == 2, "two frames beside each other"
        await press(pilot, "enter")
        text = await sees(pilot, "Because two was too few.", "M main.py", "▾ src", "return 3", "1 file ")
        assert isinstance(pilot.app.screen, SealScreen)
        await press(pilot, "m")
        await sees(pilot, "1 of 1 file, 1 seen")
        await press(pilot, "escape")
        await sees(pilot, "history of src/main.py")
        await pilot.resize_terminal(80, 24)
        await press(pilot, "j", "k")
        text = await sees(pilot, " history of src/main.py · main", "1 of 3")
        assert next(row for row in text.splitlines() if "Third" in row).startswith("▌")
        assert next(row for row in text.splitlines() if "Second" in row).startswith(" ")


async def test_a_history_keeps_the_beginning_of_long_changes_until_somebody_reads_them(
    project: str, alice: Svc, open_app: Open
) -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(20_000))
    Path("src/main.py").write_text(lines)
    assert alice("push", "-m", "Long").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot, "t", *"main", "enter", "h")
        await sees(pilot, "+value_0 = 0", "+20000")
        diff = pilot.app.screen.query_one(Diff)
        assert sum(len(file.patch or "") for file in diff.files) <= GLIMPSE < len(lines)
        await press(pilot, "tab", "G")
        await sees(pilot, "+value_19999 = 19999")
        await press(pilot, "escape", "enter")
        await sees(pilot, "1 of 1 file, 0 seen", "+20000")
        closed = pilot.app.screen
        of_closed = closed.query_one(Diff)
        assert isinstance(closed, SealScreen) and len(of_closed.rows) > 1000
        await press(pilot, "escape")
        await sees(pilot, "history of src/main.py")
        await soon(pilot, lambda: not closed.is_attached)
        assert not len(of_closed.rows) and not of_closed.files, "a closed screen may be freed much later"


async def test_lines_that_nobody_sees_are_not_kept_painted(project: str, open_app: Open) -> None:
    def painted(widget: Widget) -> int:
        return sum(len(part._styles_cache._cache) for part in widget.walk_children(Widget, with_self=True))

    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        home, screen = pilot.app.screen_stack[1], pilot.app.screen
        assert isinstance(screen, RepoScreen) and screen.view is not None
        await soon(pilot, lambda: painted(home) == 0)
        code = screen.view
        assert painted(code)
        await press(pilot, "question_mark")
        await sees(pilot, "Everywhere")
        assert painted(code), "a card leaves the screen below it visible"
        await press(pilot, "escape", "1")
        await soon(pilot, lambda: painted(code) == 0)
        await press(pilot, "2")
        await sees(pilot, "main.py" if code.folder else "src")
        assert painted(code)


async def test_changes_of_a_seal_have_colours_in_a_history(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter", "h")
        await sees(pilot, "+    return 2")
        while "src/main.py" not in pilot.app.screen.query_one(Diff).colours:
            await pilot.pause(0.05)


async def test_an_older_state_says_that_it_is_not_the_newest(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "tag", "create", "v1").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        assert "back" not in (await sees(pilot, "return 2")).splitlines()[0]
        await press(pilot, "left_square_bracket")
        text = await sees(pilot, "return 1", "1 seal back · ] newer")
        await press(pilot, "1")
        assert "] newer" not in await sees(pilot, "1 seal back")
        await press(pilot, "2", "right_square_bracket")
        text = await sees(pilot, "return 2")
        assert "back" not in text.splitlines()[0]
        await press(pilot, "b", *"v1", "enter")
        await sees(pilot, "tag v1 @")


async def test_an_empty_repository_says_how_something_gets_there(alice: Svc, open_app: Open) -> None:
    assert alice("repo", "create", "empty").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        for width in (80, 120):
            await pilot.resize_terminal(width, 24)
            text = await sees(pilot, "/empty", 'svc push -m "First seal"', "svc repo init ")
            keys = text.splitlines()[-1]
            assert not [word for word in ("blame", "history", "replay", "edit", "open") if word in keys], keys


async def test_a_pane_says_that_it_asks_for_another_file(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes, file = threading.Event(), contents.file

    def late(repo_id: str, seal: str, path: str) -> contents.Read[Any]:
        read = file(repo_id, seal, path)

        def call(api: Any) -> Any:
            assert comes.wait(PATIENCE)
            return read.call(api)

        return read if path != "data.bin" else contents.Read(read.key, read.shape, call, final=True)

    async with open_app().run_test(size=(80, 24)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        await sees(pilot, "return 2")
        monkeypatch.setattr(contents, "file", late)
        await pilot.press("escape", "G", "enter")
        text = await sees(pilot, " data.bin", "◐ asking the server")
        assert "return 2" not in text
        comes.set()
        await sees(pilot, "256 B · not text")


@pytest.mark.parametrize("width", [80, 100, 140])
async def test_a_history_names_the_authors(project: str, open_app: Open, width: int) -> None:
    async with open_app().run_test(size=(width, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter", "h")
        text = await sees(pilot, "history of src/main.py", "Second")
        assert re.search(r"Second +@t-test", text), text


async def test_a_found_file_is_revealed_in_the_tree_as_it_is(
    project: str, alice: Svc, open_app: Open
) -> None:
    for path in ("docs/guide/deep/here.md", "lib/a.py"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text("x\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "g", "j", "l")  # unfolds lib
        await sees(pilot, "▾ lib/", "    a.py")
        await press(pilot, "t", *"here", "enter")
        text = await sees(
            pilot, "▌        here.md", "▾ docs/", "▾ guide/", "▾ deep/", "▾ lib/", "    a.py", "▸ src/"
        )
        assert "../" not in text
        await press(pilot, "escape", "h")
        await sees(pilot, "history of")
        await pilot.press("escape")  # to the tree, from which it was opened
        text = await press(pilot, "t", *"main", "enter")
        await sees(pilot, "    main.py", "return 2", "▾ docs/", "▾ lib/", "▾ src/")


async def test_the_position_counts_what_is_shown_of_markdown(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("long.md").write_text("# Title\n\n" + "word " * 60 + "\n\n- a\n- b\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot, "t", *"long", "enter")
        text = await sees(pilot, "long.md ─", "• a")
        assert "of 6 ─╯" not in text and "lines" not in text
        await press(pilot, "v")
        await sees(pilot, "long.md · 6 lines", " 1 of 6 ─╯")
        await press(pilot, "v")
        assert "lines" not in await sees(pilot, "• a")
        await pilot.resize_terminal(80, 24)
        await press(pilot, "v", "j")
        await sees(pilot, "2 of 6 lines")
