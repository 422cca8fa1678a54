"""Home and the inbox hear of events without being asked, against a real relay."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from textual import events

from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.listening import news
from tui.screens.base import Base
from tui.screens.talk.issue import IssueScreen

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def other(project: str, alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Runs a command as somebody who may write in the repository."""
    mine, theirs = os.environ["SVC_HOME"], str(tmp_path / "theirs")
    handle = f"{os.environ['TEST_HANDLE'][:30]}-ben"

    def as_them(*words: str) -> None:
        monkeypatch.setenv("SVC_HOME", theirs)
        try:
            answer = alice(*words)
            assert answer.code == 0, answer
        finally:
            monkeypatch.setenv("SVC_HOME", mine)

    as_them("login", "--device-key", "--handle", handle)
    assert alice("repo", "collaborator", "add", handle, "--role", "write").code == 0
    as_them("repo", "invite", "accept", project)
    return as_them


async def test_home_and_inbox_change_by_themselves(
    project: str, other: Callable[..., None], open_app: Open
) -> None:
    me = os.environ["TEST_HANDLE"]
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await sees(pilot, "● live", project[-30:])  # half of the width cuts it
        other("issue", "create", "-t", "It stalls", "-a", f"@{me}", "-R", project)
        await sees(pilot, "It stalls", "assigned")
        text = await press(pilot, "i")
        assert "It stalls" in text
        await sees(pilot, "● live")
        other("issue", "create", "-t", "It crashes", "-b", f"see @{me}", "-R", project)
        await sees(pilot, "It crashes", "mention", "Needs me 1", "Mine 1")
        await press(pilot, "escape")
        await sees(pilot, "It crashes")


async def test_a_tab_reads_what_came_while_one_of_its_rows_was_open(
    project: str, other: Callable[..., None], alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The issue on top takes the news; the list of its tab reads them at esc."""
    assert alice("issue", "create", "-t", "It stalls").code == 0
    taken: list[object] = []
    news_of_issue = IssueScreen.news
    monkeypatch.setattr(IssueScreen, "news", lambda self: (taken.append(self), news_of_issue(self)))
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "● live", "It stalls")
        await press(pilot, "enter")
        await sees(pilot, "#1  It stalls")
        taken.clear()
        other("issue", "create", "-t", "It crashes", "-R", project)
        await soon(pilot, lambda: taken)
        await press(pilot, "escape")
        await sees(pilot, "It stalls", "It crashes")


async def test_what_came_while_another_screen_was_in_front_is_there(
    project: str, other: Callable[..., None], open_app: Open, alice: Svc
) -> None:
    me = os.environ["TEST_HANDLE"]
    assert alice("repo", "create", "second").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await sees(pilot, "● live", "second")
        assert isinstance(pilot.app, SvcApp)
        await press(pilot, "w")
        await press(pilot, *"second", "enter")
        await sees(pilot, "8 Set", "second  main")
        home = pilot.app.screen_stack[-2]
        assert isinstance(home, Base)
        home.listen()  # as it does when an answer comes late
        other("issue", "create", "-t", "It stalls", "-a", f"@{me}", "-R", project)
        until = time.monotonic() + PATIENCE
        while not pilot.app.news._missed:
            assert time.monotonic() < until, (pilot.app.news._shows, pilot.app.news.following._repo_ids)
            await pilot.pause(0.05)
        await press(pilot, "escape")
        await sees(pilot, "It stalls")


async def test_a_long_reading_waits_for_a_pause_between_keys(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        app, asked = pilot.app, list[bool]()
        assert isinstance(app, SvcApp)
        monkeypatch.setattr(app.screen, "news", lambda: asked.append(True))
        app.news.took, app.news._news_due = 1.0, True
        typed_at = app.key_at
        app.post_message(events.Key("j", "j"))
        async with asyncio.timeout(PATIENCE):
            while app.key_at == typed_at:
                await pilot.pause(0.02)
        # no pause in which a machine may leave this test is as long as PATIENCE
        monkeypatch.setattr(news, "PAUSE", PATIENCE)
        monkeypatch.setattr(news, "NO_PAUSE", PATIENCE)
        app.news._ask_for_news()
        assert asked == [], "it waits while keys come"
        monkeypatch.setattr(news, "NO_PAUSE", 0.0)
        app.news._ask_for_news()
        assert asked == [True], "but not for ever"
        monkeypatch.setattr(news, "PAUSE", 0.1)
        monkeypatch.setattr(news, "NO_PAUSE", PATIENCE)
        app.post_message(events.Key("j", "j"))
        app.news._ask_for_news()
        async with asyncio.timeout(PATIENCE):
            while len(asked) < 2:
                await pilot.pause(0.05)
