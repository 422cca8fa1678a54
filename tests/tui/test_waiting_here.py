"""What waits on this machine: begun comments and queued actions, on the row that they are about."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from localstore.core.errors import ServerUnreachable
from svc.flows.outbox.actions import Report
from svc.http.bounds import current
from tests.patience import PATIENCE, until
from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, sees, settle, soon
from tests.tui.test_issues import NOWHERE, issue
from tui.app import SvcApp
from tui.listening.backoff import Backoff
from tui.listening.events import HURRIED
from tui.reads import Read
from tui.sending import Sending

__all__ = ["issue", "project", "proposal"]
Open = Callable[..., SvcApp]


async def test_a_begun_comment_is_named_and_thrown_away(issue: str, open_app: Open) -> None:
    """The row and the footer name a draft; esc asks about it even if nothing was typed now."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 Retry stalls")
        await press(pilot, "c", *"Half")
        await press(pilot, "escape", "escape")
        await sees(pilot, "✎ draft", "c go on writing")
        await press(pilot, "enter")
        await sees(pilot, "✎ draft comment · c goes on", "Half", "c go on writing")
        await press(pilot, "c")
        await sees(pilot, "comment on #1", "ctrl+s send")
        await press(pilot, "escape")
        await sees(pilot, "D discard")
        await press(pilot, "D")
        text = await sees(pilot, "discarded", "c comment")
        assert "✎" not in text and "Half" not in text


async def test_an_unchanged_text_is_left_without_a_question(issue: str, alice: Svc, open_app: Open) -> None:
    assert alice("issue", "comment", "1", "-b", "Mine").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "Mine")
        await press(pilot, "G", "C")
        await sees(pilot, "edit the comment on #1")
        text = await press(pilot, "escape")
        assert "discard" not in text and "edit the comment on" not in text


async def test_the_light_says_that_a_change_is_not_answered(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, send = threading.Event(), Sending.send

    def send_late(sending: Sending) -> Report:
        answers.wait(PATIENCE)
        return send(sending)

    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 Retry stalls", "● live")
        monkeypatch.setattr(Sending, "send", send_late)
        await pilot.press("z")
        await sees(pilot, "⋯ closing", "◐ slow")
        answers.set()
        await sees(pilot, "#1: closed now", "● live")


async def test_what_waits_stands_on_its_row(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "It hangs")
    async with open_app(NOWHERE).run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 Retry stalls", "z close")
        await press(pilot, "z")
        text = await sees(
            pilot, "⋯ closing", "○ offline", "close #1 waits here until the server answers; s lists"
        )
        assert "⋯ queued  change" not in text, "it stands on the row, and not below the list too"
        await press(pilot, "g")
        await sees(pilot, "⋯ closing", "z reopen")
        await press(pilot, "enter")
        await sees(pilot, "⋯ closing", "z reopen")
        await pilot.resize_terminal(80, 24)
        await press(pilot, "escape")
        await sees(pilot, "⋯ closing")


async def test_what_could_not_be_read_is_read_once_the_server_answers(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_app()
    fetch = app.client.fetch

    def away(read: Read[object]) -> object:
        if "main.py" in read.key:
            raise ServerUnreachable("nobody answers")
        return fetch(read)

    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "src/", "● live")
        monkeypatch.setattr(app.client, "fetch", away)
        await press(pilot, "t", *"main", "enter")
        await sees(pilot, "never read on this machine")
        monkeypatch.setattr(app.client, "fetch", fetch)
        app.news._set_state("live")
        await sees(pilot, "return 2", "● live")


@pytest.mark.parametrize("noun", ["issue", "pr"])
async def test_people_are_chosen_and_assigned(
    issue: str, proposal: str, noun: str, alice: Svc, open_app: Open
) -> None:
    me = os.environ["TEST_HANDLE"]
    number = "1" if noun == "issue" else "2"
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", *(["p"] if noun == "pr" else []))
        await sees(pilot, f"#{number} ")
        await press(pilot, "U")
        await sees(pilot, f"people on #{number}", f"☐ @{me[:20]}", "owner")
        await press(pilot, "space", "enter")
        await sees(pilot, f"→ @{me[:20]}")
        await press(pilot, "enter", "U")
        await sees(pilot, f"☑ @{me[:20]}")
        await press(pilot, "space", "enter", "question_mark", *"people")
        await sees(pilot, "U", "assign people")
    assert json.loads(alice(noun, "view", number, "--json", "assignees").out)["assignees"] == []


async def test_a_tab_that_was_never_read_is_not_said_to_be_empty(project: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "src/", "● live")
    claims = ("no open", "no runs", "no run ", "none in", "no releases", "nothing known", "✓ nothing")
    async with open_app(NOWHERE).run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for keys in (("3",), ("p",), ("o",), ("4",), ("5",), ("6",), ("7",)):
            await press(pilot, *keys)
            text = await sees(pilot, "○ offline", "never read")
            assert not [claim for claim in claims if claim in text], text


async def test_a_change_is_in_the_outbox_while_many_requests_wait(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = threading.Event()
    app = open_app()
    async with app.run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "#1 Retry stalls", "● live")

        def hang(read: Read[object]) -> object:
            answers.wait(PATIENCE)
            raise ServerUnreachable("nobody answers")

        monkeypatch.setattr(app.client, "fetch", hang)
        monkeypatch.setattr("tui.outbox.SLOW", 0.2)
        monkeypatch.setattr(Sending, "send", lambda sending: hang(None) or Report())  # type: ignore[arg-type]
        for number in range(12):
            app.load(Read(f"hangs {number}", int, lambda api: 0), lambda value, at: None)
        await pilot.press("z")
        await sees(pilot, "⋯ closing", "⋯ 1 queued", "close #1 waits here until the server answers")
        answers.set()


async def test_calls_that_a_server_does_not_answer_end_with_the_app(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.ENDING", 0.1)
    app, bounds = open_app(), []
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app.run_worker(lambda: bounds.extend(current()), thread=True)
        await settle(pilot)
        app.exit()
    assert bounds == [app._ending]
    until(lambda: app._ending.ended)


async def test_a_server_that_answers_again_gets_the_outbox_and_is_asked_for_news_each_time(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was away twice within the time between two readings."""
    monkeypatch.setattr("tui.listening.news.AGAIN_EVERY", 1.0)
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await sees(pilot, "● live")
        news, sent = [], []
        monkeypatch.setattr(app.screen, "news", lambda: news.append(1))
        monkeypatch.setattr(app.outbox, "send", lambda **options: sent.append(options))
        for times in (1, 2):
            app.news.state = "offline"
            app.news.state = "online"
            assert sent == [{"by_user": False}] * times
            await soon(pilot, lambda times=times: len(news) >= times)  # type: ignore[misc]


def test_a_lost_server_is_asked_for_often_while_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    ended = SimpleNamespace(wait=waited.append)
    backoff = Backoff()
    for _ in range(10):
        backoff.lengthen()
    backoff.wait(ended, HURRIED)  # type: ignore[arg-type]
    backoff.wait(ended)  # type: ignore[arg-type]
    assert waited[0] <= 1.2 * HURRIED < 2 and waited[1] > 10
