"""Answers that come after the user has gone on: to another seal, folder, file or branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from tests.svc.conftest import Svc
from tests.tui.code.held import Held
from tests.tui.code.test_code import opened
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.widgets.lines import Lines
from tui.widgets.source import Source

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


def rows(pilot: Pilot[None], name: str) -> str:
    """The rows of a list of the tab Code."""
    shown = pilot.app.screen.query_one(f"#{name}", Lines).rows
    return "\n".join("".join(text for text, _ in shown[at].left) for at in range(len(shown)))


async def test_a_late_text_of_another_seal_is_not_shown(project: str, open_app: Open, held: Held) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter")
        await sees(pilot, "return 2")
        held.word = "/file/"
        await press(pilot, "left_square_bracket")
        await soon(pilot, lambda: len(held.answers) == 1)
        await press(pilot, "right_square_bracket")
        await soon(pilot, lambda: len(held.answers) == 2)
        text = await held.let_go(pilot, 2, last_first=True)
        assert "return 2" in text and "return 1" not in text


async def test_a_text_has_its_own_blame(project: str, open_app: Open, held: Held) -> None:
    """The blame of an older seal may come before its text."""
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter", "B")

        def blamed() -> int:
            file = pilot.app.screen.query_one("#file", Lines).rows
            if not isinstance(file, Source):
                return 0
            found = [file.find_blame(number) for number in (1, 2)]
            return len({blame.seal_id for blame in found if blame is not None})

        await soon(pilot, lambda: blamed() == 2)
        held.word = "/file/"
        await press(pilot, "left_square_bracket")
        await soon(pilot, lambda: len(held.answers) == 1)
        assert "return 2" in await settle(pilot)
        assert blamed() != 1
        assert "return 1" in await held.let_go(pilot)
        await soon(pilot, lambda: blamed() == 1)


async def test_the_tree_shows_the_folder_that_was_asked_for_last(
    project: str, alice: Svc, open_app: Open, held: Held
) -> None:
    Path("lib").mkdir()
    Path("lib/one.py").write_text("1\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot)
        await sees(pilot, "lib/", "src/")
        held.word = "/tree/"
        await press(pilot, "enter")
        await soon(pilot, lambda: len(held.answers) >= 1)
        await press(pilot, "j", "enter")
        await soon(pilot, lambda: any(key.endswith("/src") for key, _ in held.answers))
        await held.let_go(pilot, last_first=True)
        assert "main.py" in rows(pilot, "tree") and "one.py" not in rows(pilot, "tree")


async def test_the_tree_is_of_the_shown_seal(project: str, alice: Svc, open_app: Open, held: Held) -> None:
    Path("added.md").write_text("# Added\n")
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot)
        await sees(pilot, "added.md")
        held.word = "/tree/"
        await press(pilot, "left_square_bracket")
        await soon(pilot, lambda: len(held.answers) == 1)
        await press(pilot, "right_square_bracket")
        await held.let_go(pilot, 2, last_first=True)
        assert "added.md" in rows(pilot, "tree")


async def test_a_history_that_is_read_again_keeps_the_cursor_and_the_focus(
    project: str, open_app: Open, held: Held
) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"main", "enter", "h")
        await sees(pilot, "history of src/main.py", "Second", "First")
        await press(pilot, "escape")
        held.word = "/history/"
        await press(pilot, "h")
        await soon(pilot, lambda: len(held.answers) == 2)
        file = pilot.app.screen.query_one("#file", Lines)
        held.answers.pop(0)[1]()  # as it was kept
        await press(pilot, "j", "tab")
        focused = pilot.app.screen.focused
        assert file.cursor == 1 and focused is not file
        await held.let_go(pilot)
        assert file.cursor == 1 and pilot.app.screen.focused is focused


async def test_a_late_history_of_another_file_is_not_shown(project: str, open_app: Open, held: Held) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "t", *"README", "enter")
        await sees(pilot, "Read me.")
        held.word = "/history/"
        await press(pilot, "h")
        await soon(pilot, lambda: len(held.answers) == 1)
        of_readme = held.answers.pop()[1]
        held.word = ""
        await press(pilot, "escape", "t", *"main", "enter")
        await sees(pilot, "return 2")
        await press(pilot, "h")
        await sees(pilot, "history of src/main.py", "Second")
        of_readme()
        await settle(pilot)
        assert "Second" in rows(pilot, "file")


async def test_the_history_of_the_branch_follows_to_another_branch(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("added.md").write_text("# Added\n")
    assert alice("push", "-m", "On the topic").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await opened(pilot, "1", "h")
        await sees(pilot, "history of project · main", "Second")
        await press(pilot, "b")
        await press(pilot, *"topic", "enter")
        await sees(pilot, "history of project · topic", "On the topic")
