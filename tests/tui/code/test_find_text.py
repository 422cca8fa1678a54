"""The search in the texts of all files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_typed_ahead import burst
from tui.app import SvcApp
from tui.screens.code import find_text
from tui.screens.code.find_text import HITS, FileText, Hit, find
from tui.widgets.lines import Lines

__all__ = ["project"]
Open = Callable[..., SvcApp]


def text(path: str, words: str) -> FileText:
    return FileText(path, words, words.casefold())


def test_lines_are_found_once_each_in_upper_and_lower_case() -> None:
    texts = [text("a", "one\nTwo two\n\ntwo"), text("b", "none"), text("c", "Stra\u00dfe\nTWO")]
    assert find(texts, "TWO") == [Hit("a", 2, "Two two"), Hit("a", 4, "two"), Hit("c", 2, "TWO")]
    assert find(texts, "strasse") == [Hit("c", 1, "Stra\u00dfe")]
    assert find(texts, "") == find(texts, "three") == []
    assert len(find([text("a", "x\n" * 2 * HITS)], "x")) == HITS


@pytest.mark.parametrize("width", [80, 140])
async def test_all_files_are_searched(project: str, alice: Svc, open_app: Open, width: int) -> None:
    async with open_app().run_test(size=(width, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "README.md", "F search files")
        text = await press(pilot, "slash", *"zzz")
        assert "F searches in all files" in " ".join(text.replace("│", " ").split())
        await press(pilot, "escape")
        await press(pilot, "F", *"return")
        beside = ["1 def main():"] if width > 100 else []
        await sees(pilot, "src/main.py:2  return 2", "1 line in 1 file", *beside)
        await press(pilot, "enter")
        await sees(pilot, "src/main.py", "def main():", "2     return 2")
        await press(pilot, "1")
        await sees(pilot, "F search files")
        burst(pilot, "F", *"nowhere", "enter")
        await sees(pilot, "no file contains this", "nothing here has nowhere")
        await press(pilot, "ctrl+u", *"read me", "enter")
        await sees(pilot, "3 Read me.")
        text = await press(pilot, "question_mark")
        assert "search in all files" in text
        await press(pilot, "escape", "space", *"search in all")
        await sees(pilot, "search in all files")


async def test_a_search_goes_on_in_the_opened_file_and_begins_with_the_last_words(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("long.py").write_text("x = 1\n" * 3 + "needle = 2\n" + "x = 1\n" * 60 + "needle = 3\n")
    assert alice("push", "-m", "Third").code == 0
    app = open_app()
    async with app.run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "README.md", "F search files")
        await press(pilot, "F", *"needle")
        await sees(pilot, "2 lines in 1 file")
        await press(pilot, "enter")
        text = await sees(pilot, " 4 needle = 2", "n next match", "4 of 65")
        assert "needle = 3" not in text
        lines = app.screen.query_one("#file", Lines)
        line = next(lines.render_line(y) for y in range(10) if "needle" in lines.render_line(y).text)
        assert [segment.text for segment in line if segment.text == "needle"]  # marked, so by itself
        await press(pilot, "n")
        await sees(pilot, "65 needle = 3", "2 of 2")
        await press(pilot, "N")
        await sees(pilot, " 4 needle = 2", "1 of 2")
        await press(pilot, "F")
        await sees(pilot, "2 lines in 1 file", "/ needle")
        await press(pilot, *"return")
        await sees(pilot, "src/main.py:2  return 2", "1 line in 1 file", "/ return")
        await press(pilot, "escape", "F")
        await sees(pilot, "src/main.py:2  return 2", "/ return")
        await press(pilot, "enter")
        await sees(pilot, "2     return 2", "2 of 2")


async def test_keys_that_can_do_nothing_are_not_listed(project: str, open_app: Open) -> None:
    """Those of a comparison while a plain file is shown, and those of a preview without room for one."""
    async with open_app().run_test(size=(99, 70)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "question_mark")
        text = await sees(pilot, "blame", "source of Markdown")
        assert "hunk" not in text and "side by side" not in text and "fold the file" not in text
        await press(pilot, "escape", "3", "question_mark")
        assert "the preview" not in await sees(pilot, "Keys", "Everywhere")
        await press(pilot, "escape")
        await pilot.resize_terminal(120, 70)
        await press(pilot, "question_mark")
        await sees(pilot, "Keys", "hide or show the preview")


async def test_what_is_left_out_of_the_search_is_said(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that is named searches without a limit."""
    monkeypatch.setattr(find_text, "LARGEST", 1024)
    Path("large.txt").write_text("return\n" * 1024)
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "F", *"return")
        await sees(pilot, "1 line in 1 file · 1 over 1 KiB left out; :grep searches all")
        await press(pilot, "escape", "colon", *"grep -w return -l", "enter")
        await sees(pilot, "large.txt", "src/main.py", "not searched: 1 binary file")
        await press(pilot, "escape", "colon", *"grep return HEAD~2", "enter")
        await sees(pilot, "2:    return 1")
        await press(pilot, "escape", "colon", *"grep nowhere", "enter")
        await sees(pilot, "nothing matches", "keys here")


async def test_no_more_is_read_than_the_app_searches(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_text, "MOST", 40)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "F", *"read")
        await sees(pilot, "only the first 0 MiB", "3  Read me.")
        await press(pilot, "ctrl+u", *"return")
        await sees(pilot, "no file contains this")
