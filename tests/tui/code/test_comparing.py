"""The screen that compares two branches, tags or seals, and the ways to it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localstore.core.errors import Forbidden
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_snapshots import compare, dumped
from tests.tui.test_without_server import away
from tui import contents
from tui.app import SvcApp
from tui.screens.code.comparing import two_in
from tui.screens.code.comparison import Comparison

__all__ = ["project"]
Open = Callable[..., SvcApp]
SIZES = [(80, 24), (140, 40), (200, 50)]


@pytest.fixture
def topic(project: str, alice: Svc) -> str:
    """A branch `topic` with a changed, a new and a removed file, and a seal on `main` that it lacks."""
    assert alice("repo", "tag", "create", "v1").code == 0
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/main.py").write_text("def main():\n    return 3\n")
    Path("src/more.py").write_text("MORE = 1\n")
    Path("data.bin").unlink()
    assert alice("push", "-m", "Return three").code == 0
    assert alice("switch", "main").code == 0
    Path("README.md").write_text("# Project\n\nRead me twice.\n")
    assert alice("push", "-m", "Say it twice").code == 0
    return project


@pytest.mark.parametrize(
    ("words", "two"),
    [
        (["a..b"], ("a", "b", "..")),
        (["v1.0...b/c"], ("v1.0", "b/c", "...")),
        (["a", "b"], ("a", "b", "")),
        (["..b"], None),
        (["a.."], None),
        (["../a"], None),
        (["a..b", "--stat"], None),
        (["a", "b", "c"], None),
        ([], None),
    ],
)
def test_what_a_line_compares(words: list[str], two: tuple[str, str, str] | None) -> None:
    assert two_in(words) == two


async def opened(pilot: Any) -> None:
    await settle(pilot)
    await press(pilot, "enter", "2")
    await sees(pilot, "README.md", "enter open", "t find file")


async def test_the_card_of_branches_compares_with_the_shown_one(topic: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await press(pilot, "b")
        await sees(pilot, "space compare with main", "↑1 ↓1")
        await press(pilot, "space")
        await sees(pilot, "main is what is shown; move to another one")
        await press(pilot, *"topi", "space")
        await sees(
            pilot,
            "main..topic",
            "Return three",
            "Say it twice",
            "1 seal ahead, 1 behind",
            "4 files",
            "what only the old one has counts as removed",
            "M main.py",
            "A more.py",
            "D data.bin",
            "M README.md",
            "hunk 1 of 1",
        )
        await press(pilot, "d")
        text = await sees(pilot, "main...topic", "3 files", "where they parted", "d with each other")
        assert "README.md" not in text
        await press(pilot, "d", "x")
        await sees(pilot, "topic..main", "D more.py", "A data.bin")
        await press(pilot, "escape")
        await sees(pilot, "space compare with main", "topi", "esc leave")
        await press(pilot, "enter")
        await sees(pilot, "topic @ ")


async def test_a_file_stays_while_the_two_are_swapped(topic: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await press(pilot, "colon", *"diff main..topic", "enter")
        await sees(pilot, "main..topic", "1 of 4 files")
        await press(pilot, "right_curly_bracket")
        await sees(pilot, "A src/more.py", "2 of 4 files")
        await press(pilot, "x")
        await sees(pilot, "topic..main", "D src/more.py", "2 of 4 files")


async def test_a_typed_line_opens_the_screen(topic: str, alice: Svc, open_app: Open) -> None:
    seal = alice("log", "topic", "--jq", ".[0].id").out.strip()
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        for line, words in (
            ("diff main..topic", ("main..topic", "4 files", "d since they parted")),
            ("diff main...topic", ("main...topic", "3 files", "where they parted")),
            (f"diff v1..{seal[:6]}", (f"v1..{seal[:8]}", "1 seal ahead, 0 behind", "3 files")),
        ):
            await press(pilot, "colon", *line, "enter")
            await sees(pilot, *words)
            assert isinstance(pilot.app.screen, Comparison)
            await press(pilot, "escape")
            await sees(pilot, "b branch")


async def test_any_other_line_prints_as_before(topic: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        for line, words in (
            ("diff main..nothing", "has no branch, tag or seal nothing"),
            ("diff --name-only main..topic", "svc diff --name-only main..topic"),
            ("diff topic README.md", "svc diff topic README.md"),
        ):
            await press(pilot, "colon", *line, "enter")
            await sees(pilot, words)
            if "has no" not in words:
                await sees(pilot, " · done")
                await press(pilot, "escape")
                await sees(pilot, "b branch")


async def test_two_words_are_given_back_with_dots(topic: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot)
        await press(pilot, "colon", *"diff main topic", "enter")
        await sees(pilot, "two are compared as main..topic", "svc diff main..topic")
        await press(pilot, "enter")
        await sees(pilot, "1 seal ahead, 1 behind")


async def test_two_that_are_the_same_say_so(topic: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "branch", "same").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot)
        await press(pilot, "colon", *"diff main..same", "enter")
        await sees(pilot, "main and same have the same files", "the same seal")
        await press(pilot, "escape", "colon", *"diff topic...v1", "enter")
        await sees(pilot, "v1 has changed nothing since topic and it parted", "0 seals ahead, 1 behind")


async def test_until_it_is_compared_nothing_is_said_to_be_equal(
    topic: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    comes, changes = threading.Event(), contents.changes

    def late(*arguments: Any, **options: Any) -> contents.Read[Any]:
        read = changes(*arguments, **options)

        def call(api: Any) -> Any:
            assert comes.wait(PATIENCE)
            raise Forbidden("your role may not compare here")

        return contents.Read(read.key, read.shape, call, final=True)

    monkeypatch.setattr(contents, "changes", late)
    async with open_app().run_test(size=(120, 30)) as pilot:
        await opened(pilot)
        await press(pilot, "colon", *"diff main..topic")
        await pilot.press("enter")  # what waits until all workers have ended would wait for this one
        text = await sees(pilot, "seals ", "asking the server")
        assert "no difference" not in text and "same" not in text
        await pilot.resize_terminal(110, 30)
        await pilot.pause()
        text = await sees(pilot, "asking the server", "new  topic")
        assert "no difference" not in text and "same" not in text
        comes.set()
        text = await sees(pilot, "your role may not compare here")
        assert "no difference" not in text and "same" not in text and "0 files" not in text


async def test_without_the_server_it_says_why(
    topic: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await opened(pilot)
        await press(pilot, "b")
        await sees(pilot, "↑1 ↓1")
        comes_back = away(app, monkeypatch)
        await press(pilot, *"topic", "space")
        text = await sees(pilot, "never read on this machine", "cannot reach a.example")
        assert "no difference" not in text and "same files" not in text
        comes_back()
        await press(pilot, "r")
        await sees(pilot, "1 seal ahead, 1 behind", "4 files")


@pytest.mark.parametrize(("width", "height"), SIZES)
async def test_it_looks_as_it_did(
    topic: str, open_app: Open, width: int, height: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    app = open_app()
    app.clock = lambda: 0.0
    async with app.run_test(size=(width, height)) as pilot:
        await opened(pilot)
        await press(pilot, "colon", *"diff main..topic", "enter")
        await sees(pilot, "● live", "1 seal ahead, 1 behind", "return 3")
        await settle(pilot)
        compare({"comparison": dumped(app)}, width, height)
