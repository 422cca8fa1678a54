"""The README of the overview, and rows of parts broken between words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.text import fold

__all__ = ["project"]
WORDS = st.text("ab 界-", max_size=40)


@given(st.lists(st.tuples(WORDS, st.sampled_from(["text", "dim"])), max_size=6), st.integers(4, 30))
def test_rows_are_broken_between_words_and_nothing_is_lost(parts: list[tuple[str, str]], width: int) -> None:
    rows = fold(parts, width)
    whole = "".join(words for words, _ in parts)
    texts = ["".join(words for words, _ in row) for row in rows]
    assert "".join(texts) == whole
    for text in texts:
        assert cell_len(text.rstrip()) <= width or len(text.split()) <= 1
    roles = [role for words, role in parts for _ in words]
    assert [role for row in rows for words, role in row for _ in words] == roles


async def test_the_readme_is_as_wide_as_the_terminal_and_can_be_read(
    project: str, alice: Svc, open_app: Callable[..., SvcApp]
) -> None:
    Path("README.md").write_text("# Project\n\n" + "a long story about words " * 8 + "with an end.\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(60, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "1")
        assert "with an end." in text
        assert "…" not in text[text.index("Project") :]
        await pilot.resize_terminal(120, 30)
        rows = (await settle(pilot)).splitlines()
        assert max(map(len, (row.rstrip() for row in rows if "story" in row))) > 90


async def test_keys_that_act_in_code_come_back_to_the_overview(
    project: str, open_app: Callable[..., SvcApp]
) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await press(pilot, "t", *"main", "enter")
        await sees(pilot, "return 2", "2 lines")
        await press(pilot, "1")
        await sees(pilot, "Read me.", "h history")
        await press(pilot, "h")
        await sees(pilot, "history of project · main", "First", "Second", "seal ")
        await press(pilot, "enter")
        await sees(pilot, "/project  seal ")
        await press(pilot, "escape")
        await sees(pilot, "history of project · main")
        await press(pilot, "escape")
        await sees(pilot, "Read me.", "h history", "F search files", "o newest seal")
        for key, card in (("t", "find file"), ("F", "search in all files")):
            await press(pilot, key)
            await sees(pilot, f"─ {card} ─")
            await press(pilot, "escape")
            text = await sees(pilot, "Read me.", "o newest seal")
            assert f"─ {card} ─" not in text
        await press(pilot, "2")
        await sees(pilot, "return 2", "src/main.py")  # the file that was open there
        await press(pilot, "1", "t", *"main", "enter")
        await sees(pilot, "return 2", "2 lines")
        await press(pilot, "escape")
        assert "o newest seal" not in await sees(pilot, "return 2", "main.py")


async def test_a_readme_is_a_page_and_its_links_open_files(
    project: str, alice: Svc, open_app: Callable[..., SvcApp]
) -> None:
    Path("docs").mkdir()
    Path("docs/guide.md").write_text("# The guide\n\nSee [the program](../src/main.py).\n")
    Path("README.md").write_text("# Project\n\nSee [the guide](docs/guide.md) for **more**.\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "1")
        assert "See the guide for more." in text and "# Project" not in text
        await press(pilot, "tab")
        await press(pilot, "enter")
        text = await sees(pilot, "The guide", "See the program.")
        assert "# The guide" not in text
        text = await press(pilot, "v")
        assert "1 # The guide" in text
        await press(pilot, "v", "tab")
        await press(pilot, "enter")
        await sees(pilot, "return 2")


async def test_a_readme_that_no_lexer_ends_with_is_shown_at_once(
    project: str, alice: Svc, open_app: Callable[..., SvcApp]
) -> None:
    Path("README.md").write_text("# Project\n\n" + "\n " * 15_000)
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert "characters" in await press(pilot, "1")
        await press(pilot, "2", "g", "j", "enter")
        await sees(pilot, "README.md")
        await press(pilot, "v")
        assert "1 # Project" in await sees(pilot, "# Project")


@pytest.mark.parametrize("width", [80, 120, 160])
async def test_facts_lead_on(project: str, alice: Svc, open_app: Callable[..., SvcApp], width: int) -> None:
    """Each fact that leads somewhere says so in the line of keys, and enter goes there."""
    assert alice("repo", "run", "create", "lint", "--conclusion", "failure").code == 0
    assert alice("repo", "release", "create", "v1", "-n", "Good").code == 0
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    leads = (
        "star, watch or fork",
        "copy the line",
        "open the seal",
        "open the checks",
        "open the releases",
        "open the rules",
        "choose a branch",
    )
    async with open_app().run_test(size=(width, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "1")
        await sees(pilot, "1 check ✗ lint", "v1", "1 rule", "1 branch")
        text, passed = await press(pilot, "f"), []
        for label in leads:
            for _ in range(12):
                if f"enter {label}" in text:
                    passed.append(label)
                    break
                text = await press(pilot, "tab" if width == 80 else "j")
        assert passed == list(leads), text
        assert "branches and tags" in await press(pilot, "enter")
        await press(pilot, "escape", "f")
        text = await press(pilot, "f") if width > 80 else text
        await press(pilot, "g")
        for words, key in (("copied: git clone", "y"), ("star it", "*"), ("Second", "o")):
            await press(pilot, key)
            await sees(pilot, words)
            if key != "y":
                await press(pilot, "escape")
        await press(pilot, "t")
        await sees(pilot, "find file")
        await press(pilot, *"main", "enter")
        await sees(pilot, "return 2")
