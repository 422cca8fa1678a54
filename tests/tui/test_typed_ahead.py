"""Keys that come faster than screens open: they go to what the keys before them opened, in order."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from textual import events
from textual.pilot import Pilot

from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from svc.api import Api
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import NAMES, press, project, sees, settle
from tests.tui.test_issues import issue, open_issue, waiting
from tui import contents, reads
from tui.app import SvcApp
from tui.widgets.frame import Prompt
from tui.widgets.lines import Lines

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


def burst(pilot: Pilot[None], *keys: str) -> None:
    """All at once, as a terminal hands over what was typed while the app was busy."""
    for key in keys:
        pilot.app.post_message(events.Key(NAMES.get(key, key), key if len(key) == 1 else None))


async def test_a_text_typed_at_once_is_in_the_prompt_and_runs_nothing(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_issue(pilot)
        burst(pilot, "c", *"zzx quit")
        await sees(pilot, "zzx quit")
        await press(pilot, "escape")
    assert waiting(alice) == []


def choices(pilot: Pilot[None]) -> Lines:
    """The list of the card in which something is chosen."""
    return pilot.app.screen.query_one("#choices", Lines)


async def test_a_name_typed_at_once_is_searched(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "2")
        burst(pilot, "t", *"main")
        async with asyncio.timeout(PATIENCE):
            while "src/main.py" not in await settle(pilot) or len(choices(pilot).rows) != 1:
                pass


async def test_a_search_typed_and_entered_at_once(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "2")
        burst(pilot, "t", *"main", "enter")
        await sees(pilot, "def main")


async def test_a_file_is_searched_in_a_repository_that_is_just_opened(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its branches are read later than the keys come."""
    app, refs = open_app(), contents.refs

    def late(repo_id: str) -> reads.Read[list[Ref]]:
        def call(api: Api) -> list[Ref]:
            asked.wait(PATIENCE)
            return refs(repo_id).call(api)

        return refs(repo_id)._replace(call=call)

    asked = threading.Event()
    monkeypatch.setattr(contents, "refs", late)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("enter")
        assert "no seal yet" not in shown(app)
        burst(pilot, "t", *"main", "enter")
        await pilot.pause()
        asked.set()
        await sees(pilot, "def main")


async def test_a_line_typed_at_once_is_the_command_line(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        burst(pilot, ":", *"issue view 1")
        await sees(pilot, "issue view 1")


async def test_a_line_that_comes_while_the_screen_opens_keeps_its_order(issue: str, open_app: Open) -> None:
    line = "issue list -L 20 --state open"
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for turns in (1, 2, 3, 5, 8, 13, 21):  # of the loop, between two keys
            for key in (":", *line):
                burst(pilot, key)
                for _ in range(turns):
                    await asyncio.sleep(0)
            await sees(pilot, line)
            await press(pilot, "escape")
            await sees(pilot, "Repositories")


async def test_going_back_at_once_leaves_two_screens(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        home = len(pilot.app.screen_stack)
        await open_issue(pilot)
        burst(pilot, "escape", "escape")
        await settle(pilot)
        await settle(pilot)
        assert len(pilot.app.screen_stack) == home


async def test_a_screen_that_is_left_before_it_was_there(open_app: Open, alice: Svc) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for screen in ("i", "s", "question_mark", "a"):
            for _ in range(3):
                burst(pilot, screen, "escape")
        burst(pilot, "i", "question_mark")
        await sees(pilot, "inbox")
        assert app.broken is None


async def test_what_is_typed_before_the_palette_is_there(open_app: Open, alice: Svc) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        burst(pilot, "ctrl+p", *"sync:")
        async with asyncio.timeout(PATIENCE):
            while "sync: state and queue" not in (text := await settle(pilot)) or "account" in text:
                pass


async def test_the_light_changes_while_a_screen_opens(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app = pilot.app
        assert isinstance(app, SvcApp)
        for _ in range(3):
            app.do_command()
            app.news._set_state("live")  # the new screen is in front and has no widgets yet
            await sees(pilot, "esc")
            await press(pilot, "escape")


async def open_form(pilot: Pilot[None]) -> None:
    """The form of a new issue, its title asked."""
    await settle(pilot)
    await press(pilot, "enter")
    await press(pilot, "3")
    await press(pilot, "a")


async def test_what_follows_enter_in_one_piece_is_a_command_again(
    project: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_form(pilot)
        burst(pilot, *"Pool leaks", "enter", "escape", "S")
        await sees(pilot, "#1 Pool leaks", "Issues open · 1")
    assert "Pool leaksS" not in alice("issue", "list").out
    assert waiting(alice) == []


async def test_keys_that_edit_a_prompt_are_in_their_order(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_form(pilot)
        burst(pilot, *"Pool leakz", "backspace", *"s twice", "home", *"The ", "end", *"?", "enter", "escape")
        await sees(pilot, "title     The Pool leaks twice?")


async def test_an_answer_of_one_key_takes_one(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_form(pilot)
        await press(pilot, *"Pool", "enter", "escape")
        burst(pilot, "D", "y", "question_mark")
        await sees(pilot, "Keys  tab Issues")


async def test_a_prompt_that_another_one_follows(issue: str, open_app: Open) -> None:
    """A text in a form; esc goes back to the form, which has it already."""
    async with open_app().run_test(size=(80, 24)) as pilot:
        await open_form(pilot)
        burst(
            pilot,
            *"Pool",
            "enter",
            *"It hangz",
            "backspace",
            "s",
            "enter",
            *"for long",
            "escape",
            "k",
            "enter",
        )
        await sees(pilot, "2 lines", "It hangs", "enter next  ctrl+s send all")


async def test_a_line_that_is_completed_within_one_piece(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        burst(pilot, ":", *"issue lis", "tab", *"-L 2")
        await sees(pilot, "issue list -L 2")


async def test_no_draft_stays_of_a_text_that_was_entered_in_one_piece(
    issue: str, alice: Svc, open_app: Open
) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await open_issue(pilot)
        burst(pilot, "c", *"Seen here", "ctrl+s")
        await sees(pilot, "Seen here")
        await settle(pilot)
        assert list((Path(os.environ["SVC_HOME"]) / "drafts").glob("*")) == []


async def test_a_repository_that_is_searched_before_the_list_is_there(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The field keeps what is typed, and enter waits for the answer instead of taking another row."""
    visible = reads.visible_repos
    answers = threading.Event()

    def late() -> reads.Read[list[Repo]]:
        def call(api: Api) -> list[Repo]:
            answers.wait(PATIENCE)
            return [*visible().call(api), theirs]

        return visible()._replace(call=call)

    app = open_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        (mine,) = app.client.read_cached(app.repos)[0]
        theirs = msgspec.structs.replace(mine, id="0" * 20, full_name="zoe/faraway")
        monkeypatch.setattr(reads, "visible_repos", late)
        burst(pilot, "w", *"faraway", "enter", "question_mark")
        await sees(pilot, "asking the server")
        answers.set()
        await sees(pilot, "zoe/faraway", "Keys  tab")


async def test_a_chooser_has_one_field(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        for keys in (("w",), ("space",), ("colon",), ("enter", "3", "l"), ("b",)):
            await press(pilot, *keys)
            async with asyncio.timeout(PATIENCE):
                while not isinstance(pilot.app.focused, Prompt):
                    await settle(pilot)
            assert len(pilot.app.screen.query(Prompt)) == 1, keys
            await press(pilot, "escape")
