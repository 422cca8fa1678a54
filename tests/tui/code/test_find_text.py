"""The search in the texts of all files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_typed_ahead import burst
from tui.app import SvcApp
from tui.screens.code import code
from tui.screens.code.find_text import HITS, FileText, Hit, find

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


async def test_too_much_to_search_says_what_helps(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that it names searches without a limit."""
    monkeypatch.setattr(code, "SEARCHED", 100)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "F")
        await sees(pilot, "too much to search at each key; run :grep WORDS")
        await press(pilot, "colon", *"grep -w return", "enter")
        await sees(pilot, "src/main.py", "2:    return 2", "not searched: 1 binary file")
        await press(pilot, "escape", "colon", *"grep return HEAD~1", "enter")
        await sees(pilot, "2:    return 1")
        await press(pilot, "escape", "colon", *"grep nowhere", "enter")
        await sees(pilot, "nothing matches", "exit 1")
