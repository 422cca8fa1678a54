"""The app while its server does not answer: what it says, what can be done, and what happens afterwards."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from localstore.core.errors import ServerUnreachable
from localstore.folder.lock import hold_lock
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import NOWHERE, issue, waiting
from tui.app import SvcApp
from tui.reads import Read
from tui.screens.command.output import Command

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def mute() -> Iterator[str]:
    """The address of a server that takes connections and answers nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}"


def away(app: SvcApp, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let the app's server answer no more. Returns what lets it answer again."""
    fetch, away = app.client.fetch, [True]

    def ask(read: Read[object]) -> object:
        if away:
            raise ServerUnreachable(
                "cannot reach http://a.example ([Errno 111] Connection refused); check it"
            )
        return fetch(read)

    monkeypatch.setattr(app.client, "fetch", ask)
    return away.clear


async def test_a_page_that_was_never_read_says_so_before_the_server_is_given_up(
    mute: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.SLOW", 0.2)
    async with open_app(mute).run_test(size=(120, 30)) as pilot:
        text = await sees(pilot, "◐ never read on this machine, and the server has not", "i inbox")
        assert "enter open" not in text, "there is nothing to open"
        await press(pilot, "i")
        text = await sees(pilot, "never read on this machine")
        assert "Inbox 0" not in text, "nobody knows how many there are"


async def test_a_server_that_comes_back_is_noticed_where_nothing_was_read(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.listening.news.RETURN_EVERY", 0.2)
    app = open_app()
    comes_back = away(app, monkeypatch)
    async with app.run_test(size=(120, 30)) as pilot:
        text = await sees(
            pilot, "○ offline", "never read on this machine", "the connection", "cannot reach a.example"
        )
        assert "There is no repository" not in text
        comes_back()
        text = await sees(pilot, project, "● live", "the server answers again")
        assert "cannot reach" not in text


async def test_what_is_shown_offline_says_when_it_was_read(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await sees(pilot, project, "● live")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await sees(pilot, project, "shown as read just now")


async def test_tabs_that_were_never_read_do_not_look_empty(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "src/", "● live")
    async with open_app(NOWHERE).run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "1")
        await sees(pilot, "facts", "never read on this machine")
        await press(pilot, "8")
        await sees(pilot, "Branch rules never read here", "Checks never read here", "Access never read here")


async def test_what_a_list_knows_can_be_changed_without_the_text(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:  # which previews nothing
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1", "Retry stalls", "● live")
    async with open_app(NOWHERE).run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        text = await sees(pilot, "Retry stalls", "never read on this machine", "z close")
        assert "T edit" not in text, "its text is not here"
        await press(pilot, "z")
        await sees(pilot, "close #1 waits here until the server answers; s lists")


async def test_a_dropped_comment_becomes_the_draft_again(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 Retry stalls", "● live")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "c")
        await press(pilot, *"Half", "ctrl+s")
        await sees(pilot, "⋯ 1 queued")
        await press(pilot, "s", "G")
        await sees(
            pilot, "⋯ comment on #1", "waits until the server answers", "its text becomes the draft again"
        )
        await press(pilot, "x", "y")
        await sees(pilot, "dropped: comment on #1; c on it goes on with the text", "nothing waits")
        await press(pilot, "u")
        await sees(pilot, "cannot reach 127.0.0.1:9")
        await press(pilot, "escape")
        await sees(pilot, "✎ draft", "c go on writing")
    assert waiting(alice) == []


async def test_a_command_reaches_no_server(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(command: Command, app: SvcApp, width: int) -> None:
        why = "svc: cannot reach http://127.0.0.1:9 ([Errno 111] Connection refused); check the address"
        app.later(lambda: command._tell(why, ("exit 7", "bad")))

    monkeypatch.setattr(Command, "_run", fail)
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1", "Retry stalls", "● live")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "shown as read")
        await press(pilot, ":", *"issue list", "enter")
        await sees(
            pilot, "issue list could not ask the server: cannot reach 127.0.0.1:9 (", "; 3 shows what was"
        )
        await press(pilot, "3")
        await sees(pilot, "Retry stalls")


async def test_files_were_never_read(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:  # which previews nothing
        await sees(pilot, project, "● live")
    async with open_app(NOWHERE).run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        text = await sees(pilot, "○ offline", "never read on this machine")
        assert "no files" not in text


async def test_offline_nobody_is_said_to_send_what_waits(issue: str, open_app: Open) -> None:
    """Another app of the account tries to send it at this moment, and cannot either."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1", "Retry stalls", "● live")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "○ offline", "Retry stalls")
        with hold_lock(Path(os.environ["SVC_HOME"]) / "outbox.lock", "svc queue"):
            await press(pilot, "z")
            await sees(pilot, "close #1 waits here until the server answers; s lists")


async def test_a_question_about_what_was_sent_meanwhile_is_closed(
    issue: str, alice: Svc, open_app: Open
) -> None:
    assert alice("issue", "close", "1", "--queue").code == 0
    lock = Path(os.environ["SVC_HOME"]) / "outbox.lock"
    with hold_lock(lock, "svc queue"):
        async with open_app().run_test(size=(120, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "s", "G", "x")
            await sees(pilot, "Drop «close #1» without sending it?")
            pilot.app.outbox.drop(pilot.app.outbox.entries[0])  # type: ignore[attr-defined]
            text = await sees(pilot, "«close #1» waits here no more", "nothing waits")
            assert "Drop «" not in text and "? keys here" in text
