"""Home, overview and code, by keys alone, against a real relay."""

from __future__ import annotations

import io
import json
import os
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot, WaitForScreenTimeout
from textual.worker import WorkerCancelled

from svc.api import Api
from svc.cmd.frame.app import run
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tui.app import SvcApp
from tui.reads import Read
from tui.screens.base import Base
from tui.screens.proposal.screen import ProposalScreen
from tui.widgets.lines import Item, Lines

Open = Callable[..., SvcApp]


async def settle(pilot: Pilot[None]) -> str:
    """Wait for what runs and what that starts, and read the screen. What a newer request has replaced is
    waited for no more."""
    for _ in range(20):
        with suppress(WorkerCancelled):
            await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        if all(worker.is_finished for worker in pilot.app.workers):
            break
    await pilot.pause()
    assert isinstance(pilot.app, SvcApp)
    return shown(pilot.app)


NAMES = {
    " ": "space",
    "-": "minus",
    "/": "slash",
    ".": "full_stop",
    ":": "colon",
    "@": "at",
    "_": "underscore",
}


async def press(pilot: Pilot[None], *keys: str) -> str:
    """Press the keys and read the screen. Characters in a row are typed without a wait after each but the
    first, which may open what takes the others."""
    at = 0
    while at < len(keys):
        end = at
        while end < len(keys) and (keys[end] in NAMES or (len(keys[end]) == 1 and keys[end].isalnum())):
            end += 1
        if end - at > 3:
            await pilot.press(keys[at])
            for char in keys[at + 1 : end - 1]:
                pilot.app.post_message(events.Key(NAMES.get(char, char), char))
            at = end - 1
        with suppress(WaitForScreenTimeout):  # a widget that went meanwhile answers to no one
            await pilot.press(keys[at])
        at += 1
    return await settle(pilot)


async def sees(pilot: Pilot[None], *words: str) -> str:
    """Wait until all the words are shown."""
    until = time.monotonic() + PATIENCE
    while True:
        assert isinstance(pilot.app, SvcApp)
        text = shown(pilot.app)
        if all(word in text for word in words):
            return text
        assert time.monotonic() < until, f"{words} not in\n{text}"
        await pilot.pause(0.05)


async def soon(pilot: Pilot[None], holds: Callable[[], object]) -> None:
    """Let the app go on until `holds` is true."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert isinstance(pilot.app, SvcApp)
        assert time.monotonic() < end, shown(pilot.app)
        await pilot.pause(0.02)


async def open_proposal(pilot: Pilot[None], *keys: str) -> None:
    """Press keys that lead to a list of proposals, and open the one under the cursor. The rows may come late,
    as may the screen."""
    until = time.monotonic() + PATIENCE
    text = await press(pilot, *keys)
    while not isinstance(pilot.app.screen, ProposalScreen):
        lines = pilot.app.screen.lines if isinstance(pilot.app.screen, Base) else None
        if lines is not None and lines.key is not None and "Proposals" in text:
            await pilot.press("enter")
        assert time.monotonic() < until, text
        await pilot.pause(0.05)
        text = await settle(pilot)


@pytest.fixture
def project(alice: Svc) -> str:
    """A repository with two seals of three files; its full name."""
    folder = Path.cwd() / "project"
    folder.mkdir()
    os.chdir(folder)
    handle = os.environ["TEST_HANDLE"]
    assert alice("repo", "create", "project", "-d", "Notes on parsing").code == 0
    assert alice("repo", "init", f"{handle}/project").code == 0
    Path("README.md").write_text("# Project\n\nRead me.\n")
    Path("src").mkdir()
    Path("src/main.py").write_text("def main():\n    return 1\n")
    Path("data.bin").write_bytes(bytes(range(256)))
    assert alice("push", "-m", "First").code == 0
    Path("src/main.py").write_text("def main():\n    return 2\n")
    assert alice("push", "-m", "Second").code == 0
    return f"{handle}/project"


async def test_a_reading_is_replaced_only_by_one_that_paints_the_same(project: str, open_app: Open) -> None:
    """A card and the page behind it read the same proposal, and both show the answer."""

    class Painter:
        def __init__(self) -> None:
            self.painted: list[int] = []

        def paint(self, value: int, at: float) -> None:
            self.painted.append(value)

    answers = threading.Event()

    def ask(_: Api) -> int:
        answers.wait(PATIENCE)
        return 7

    page, card, number = Painter(), Painter(), Read("a number", int, ask)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert isinstance(pilot.app, SvcApp)
        for painter in (page, page, card):
            pilot.app.load(number, painter.paint)
        answers.set()
        await soon(pilot, lambda: page.painted and card.painted)
        await settle(pilot)
    assert (page.painted, card.painted) == ([7], [7])


async def test_home_lists_repositories(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        text = await settle(pilot)
        assert "Repositories " in text
        assert project in text
        assert "● online" in text or "● live" in text


async def test_the_app_goes_on_when_somebody_signs_in_elsewhere(
    project: str, alice: Svc, open_app: Open
) -> None:
    session = json.loads(alice("auth", "token", "list", "--json", "id").out)[0]["id"]
    async with open_app().run_test(size=(80, 24)) as pilot:
        await sees(pilot, "/project", "● live")
        assert alice("auth", "token", "revoke", session, "--yes").code == 0
        await sees(pilot, "○ sign in")
        assert alice("login", "--device-key", "--handle", os.environ["TEST_HANDLE"]).code == 0
        await sees(pilot, "● live")
        assert "the session has ended" not in await press(pilot, "r")


async def test_what_a_seal_changed_begins_with_the_file_whose_history_it_is(
    project: str, alice: Svc, open_app: Open
) -> None:
    for number in range(9):
        Path(f"a{number}.txt").write_text("one\n" * 9)
    Path("src/main.py").write_text("def main():\n    return 42\n")
    assert alice("push", "-m", "Many").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        await press(pilot, *"main", "enter")
        await press(pilot, "h")
        text = await sees(pilot, "Many", "+    return 42")
        assert "a0.txt" not in text or text.index("src/main.py") < text.index("a0.txt")
        await press(pilot, "enter")
        await sees(pilot, "✓ signed", "+    return 42", "M src/main.py", "a0.txt", "10 files")


async def test_a_file_opens_with_its_blame_and_history(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(139, 24)) as pilot:
        await settle(pilot)
        assert "src/" in await press(pilot, "enter")
        assert "../" in await press(pilot, "enter")
        assert "return 2" in await press(pilot, "j", "enter")
        handle = os.environ["TEST_HANDLE"]
        assert handle[:10] in await press(pilot, "B")
        text = await press(pilot, "h")
        assert "Second" in text
        assert "First" in text
        text = await press(pilot, "enter")
        assert "+    return 2" in text
        await sees(pilot, "  Second", "✓ signed", "1 file ", "M src/main.py")
        assert "history of src/main.py" in await press(pilot, "escape")
        assert "return 2" in await press(pilot, "escape")
        assert "return 1" in await press(pilot, "left_square_bracket")
        assert "oldest" in await press(pilot, "left_square_bracket")
        assert "return 2" in await press(pilot, "right_square_bracket")


async def test_seals_of_a_file_are_stepped_through_from_what_made_its_text(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("README.md").write_text("# Project\n\nRead me twice.\n")
    assert alice("push", "-m", "Third, of another file").code == 0
    async with open_app().run_test(size=(139, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "enter", "j", "enter")
        await sees(pilot, "return 2")
        head = pilot.app.screen.seal  # type: ignore[attr-defined]
        assert "return 1" in await press(pilot, "left_square_bracket")
        assert "return 2" in await press(pilot, "right_square_bracket")
        assert pilot.app.screen.seal == head  # type: ignore[attr-defined]
        assert "this is the newest" in await press(pilot, "right_square_bracket")
        assert "old seal" not in await press(pilot, "e")


async def test_overview_shows_readme_and_seal(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "1")
        assert "Notes on parsing" in text
        assert "«Second»" in text
        assert "Read me." in text


async def test_overview_shows_the_listing_and_who_cares(
    project: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert alice("repo", "visibility", "public", "--yes").code == 0
    assert alice("repo", "listing", "--name", "Field notes", "--category", "Writing").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "1")
        assert "0 stars, 1 watcher, 0 forks  you: watching" in text
        assert "listing Field notes, Writing: not installable" in text
        mine, ben = os.environ["SVC_HOME"], f"{os.environ['TEST_HANDLE'][:30]}-ben"
        monkeypatch.setenv("SVC_HOME", str(tmp_path / "ben"))
        with redirect_stdout(io.StringIO()):
            for words in (["login", "--device-key", "--handle", ben], ["repo", "star", project]):
                assert run(words) == 0
            assert run(["repo", "watch", project]) == 0
        monkeypatch.setenv("SVC_HOME", mine)
        assert "1 star, 2 watchers, 0 forks  you: watching" in await press(pilot, "r")


async def test_security_and_insights_say_what_there_is(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "6")
        assert "Advisories 0" in text and "Protection rules 0" in text
        assert "Franking evidence  – not in this version of svc" in text
        text = await press(pilot, "7")
        assert "Dependencies 0" in text and "Dependents 0" in text


async def test_find_file_filters_as_one_types(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert "data.bin" in await press(pilot, "t")
        await press(pilot, *"main")
        lines = pilot.app.screen.query_one("#choices", Lines)
        assert [lines.rows[at].key for at in range(len(lines.rows))] == ["src/main.py"]
        assert "return 2" in await press(pilot, "enter")


async def test_an_answer_that_comes_while_a_screen_is_removed_is_not_painted(
    project: str, open_app: Open
) -> None:
    app, painted = open_app(), list[str]()
    async with app.run_test() as pilot:
        await sees(pilot, "● live", "Repositories 1")
        await press(pilot, "enter", "3")
        await sees(pilot, "no open issues")
        left = app.screen
        app.pop_screen()  # its widgets are not gone yet
        app._paint_arrived(left, lambda: painted.append("left"))
        app._paint_arrived(app.screen, lambda: painted.append("shown"))
    assert painted == ["shown"]


async def test_what_was_seen_opens_without_the_server(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "t")
        await press(pilot, *"main", "enter")
    async with open_app("http://127.0.0.1:9").run_test(size=(80, 24)) as pilot:
        text = await settle(pilot)
        assert "/project" in text
        assert "○ offline" in text
        await press(pilot, "enter")
        await press(pilot, "t")
        assert "return 2" in await press(pilot, *"main", "enter")


async def test_a_command_says_at_once_that_the_server_is_away(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "will fail" not in await press(pilot, "colon", *"status", "enter")
    async with open_app("http://127.0.0.1:9").run_test(size=(80, 24)) as pilot:
        assert "○ offline" in await settle(pilot)
        await pilot.press("colon", *"repo list", "enter")
        await pilot.pause()
        assert isinstance(pilot.app, SvcApp)
        assert "what needs the server may wait or fail" in shown(pilot.app)
        await settle(pilot)


async def test_signing_out_forgets_what_was_seen(project: str, open_app: Open, alice: Svc) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
    assert alice("logout").code == 0
    async with open_app("http://127.0.0.1:9").run_test(size=(80, 24)) as pilot:
        assert project not in await settle(pilot)


async def test_help_and_palette_come_from_the_same_table(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 60)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        names = [action.label for action in pilot.app.actions() if action.keys]  # type: ignore[attr-defined]
        await press(pilot, "question_mark")
        lines = pilot.app.screen.query_one("#actions", Lines)
        rows = [lines.rows[at] for at in range(len(lines.rows))]
        text = "".join(words for row in rows for words, _ in (*row.left, *row.right))
        assert [name for name in names if name not in text] == []
        await press(pilot, "escape")
        assert "src/main.py" in await press(pilot, "ctrl+p", *"find", "enter")


async def test_any_command_line_runs(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "colon")
        text = await press(pilot, *"version", "enter")
        assert "done" in text


@pytest.mark.parametrize("size", [(80, 24), (200, 50), (40, 10)])
async def test_every_screen_fits_every_size(project: str, open_app: Open, size: tuple[int, int]) -> None:
    visits: list[Callable[[Pilot[None]], Awaitable[str]]] = [
        lambda pilot: settle(pilot),
        lambda pilot: press(pilot, "enter"),
        lambda pilot: press(pilot, "1"),
        lambda pilot: press(pilot, "2", "h"),
        lambda pilot: press(pilot, "enter"),
        lambda pilot: press(pilot, "question_mark"),
    ]
    async with open_app().run_test(size=size) as pilot:
        for visit in visits:
            lines = (await visit(pilot)).split("\n")
            assert len(lines) == size[1]
            assert max(map(len, lines)) <= size[0]


async def test_home_says_that_it_waits_for_a_server_that_does_not_answer(
    project: str, open_app: Open
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        origin = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with open_app(origin).run_test(size=(80, 24)) as pilot:
            await pilot.pause(0.5)
            text = shown(pilot.app)  # type: ignore[arg-type]
            assert "asking the server" in text
            assert "no repository of yours" not in text and "● online" not in text
            silent.close()
            text = await settle(pilot)
            assert "never read on this machine" in text
            assert "no repository of yours" not in text


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a server that takes connections and answers nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(16)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


async def test_a_server_that_answers_nothing_is_slow(project: str, open_app: Open, mute: str) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
    async with open_app(mute).run_test(size=(80, 24)) as pilot:
        assert "/project" in await sees(pilot, "◐ slow")


async def test_a_click_chooses_a_row_and_another_one_opens_it(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await sees(pilot, "src/", "README.md")
        rows = shown(pilot.app).splitlines()  # type: ignore[arg-type]
        at = (4, next(place for place, row in enumerate(rows) if "README.md" in row))
        await pilot.click(offset=at)
        assert "▌  README.md" in await settle(pilot)
        await pilot.click(offset=at)
        assert "Read me." in await settle(pilot)


async def test_a_click_on_a_tab_or_a_key_of_the_footer(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        row = (await sees(pilot, "3 Issues", "README.md")).splitlines()[1]
        await pilot.click(offset=(row.index("3 Issues") + 3, 1))
        text = await sees(pilot, "Issues open · 0")
        await pilot.click(offset=(text.splitlines()[-1].index("new"), 23))
        await sees(pilot, "title     title of the issue", "New issue")


def test_the_wheel_scrolls_and_takes_the_cursor_along() -> None:
    class Tall(Lines):
        size = Size(20, 10)  # type: ignore[assignment]

    lines = Tall()
    lines.show([Item(place, ((f"row {place}", "text"),)) for place in range(100)])
    lines.scroll_rows(3)
    assert (lines.top, lines.cursor) == (3, 3)
    lines.scroll_rows(-1)
    assert (lines.top, lines.cursor) == (2, 3)
    lines.scroll_rows(-2)
    assert (lines.top, lines.cursor) == (0, 3)
    lines.scroll_rows(-3)
    assert (lines.top, lines.cursor) == (0, 0)
