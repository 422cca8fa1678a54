"""Invitations, requests for access and transfers are answered where they are listed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import press, project, sees, settle, soon
from tui.app import SvcApp
from tui.screens.lists.answering import _ends

__all__ = ["other", "project", "proposal"]
Open = Callable[..., SvcApp]


@pytest.fixture
def roles(alice: Svc) -> Callable[[], dict[str, str]]:
    """Returns the role of each collaborator by handle."""

    def read() -> dict[str, str]:
        people = json.loads(alice("repo", "api", "repos/{id}/collaborators").out)["items"]
        return {person["account"]["handle"]: person["role"] for person in people}

    return read


async def test_a_request_for_access_is_granted_from_the_inbox(
    proposal: str,
    other: Callable[..., None],
    roles: Callable[[], dict[str, str]],
    open_app: Open,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    other("repo", "access", "request", "--role", "triage", "--note", "For 1.0")
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "i")
        await sees(
            pilot, "asks for a role", "enter answers: grant or decline", "asks for the role triage", "For 1.0"
        )
        await press(pilot, "enter")
        await sees(pilot, "▌grant", "decline", "open the repository")
        await press(pilot, "enter")
        text = await sees(pilot, "granted ✓", "Inbox 0", "the role triage")
        assert "esc back" in text
        assert "there is none" in await press(pilot, "X"), "an answered row does not wait"
        app = pilot.app
        assert isinstance(app, SvcApp)
        monkeypatch.setattr(app.outbox, "describe", lambda prefix: ["mark \x1b[2J as done"])
        app.screen.paint()  # type: ignore[attr-defined]
        await sees(pilot, "⋯ queued  mark \\x1b[2J as done")
        await press(pilot, "r", "escape")
        await sees(pilot, "Home", "Repositories")
    assert "triage" in roles().values()


async def test_a_report_opens_the_tab_that_lists_it(
    proposal: str, other: Callable[..., None], open_app: Open
) -> None:
    other("repo", "reports", "create", "-t", "Tokens leak", "-b", "See the log.", "--severity", "high")
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "i")
        await sees(pilot, "reports a fault in its security", "opens Security")
        await press(pilot, "slash", *"report", "enter", "enter")
        await sees(pilot, "Reports in confidence", "Tokens leak")
        while "reports a fault" not in await press(pilot, "escape"):
            pass
        assert " is back" in await press(pilot, "u")


@pytest.mark.parametrize(
    ("seconds", "words"), [(90_000, "1 day left"), (7200, "2 h left"), (1800, "less than 1 h left")]
)
def test_an_invitation_says_how_long_it_stands(seconds: int, words: str) -> None:
    invite = SimpleNamespace(expires_at="2026-03-02T00:00:00+00:00")
    now = datetime.fromisoformat(invite.expires_at).timestamp() - seconds
    rows = _ends(invite, now)  # type: ignore[arg-type]
    assert words in "".join(text for row in rows for text, _ in row.left)


@pytest.fixture
def invited(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Invites the account to a repository of somebody else. Returns the name of that repository."""
    me, mine = os.environ["TEST_HANDLE"], os.environ["SVC_HOME"]
    theirs = f"{me[:30]}-c/theirs"
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("login", "--device-key", "--handle", f"{me[:30]}-c").code == 0
    assert alice("repo", "create", "theirs").code == 0
    assert alice("repo", "collaborator", "add", me, "--role", "write", "-R", theirs).code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    return theirs


async def test_an_invitation_is_accepted_from_home(alice: Svc, invited: str, open_app: Open) -> None:
    async with open_app().run_test(size=(200, 30)) as pilot:
        await sees(pilot, "offers the role write", "╭─ facts ─", "invited by", "stands until", "6 days left")
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await sees(pilot, "invites you", "enter answers: accept or decline", "role          write")
        await sees(
            pilot, "invited by    @", "stands until  20", "6 days left", "files are shown once you have"
        )
        await press(pilot, "enter")
        await sees(pilot, "▌accept", "decline")
        await press(pilot, "enter")
        await sees(pilot, "accepted ✓", "You have the role write", "Repositories 1", "▌  t-test")
    viewer = json.loads(alice("repo", "view", invited, "--json", "viewer").out)["viewer"]
    assert viewer["role"] == "write"


@pytest.mark.parametrize("keys", [(), ("i",)])
async def test_declined_goes(invited: str, open_app: Open, keys: tuple[str, ...]) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, *keys)
        await sees(pilot, "Needs me 1", "enter answers: accept or decline")
        await press(pilot, "enter", *"decl", "enter")
        await sees(pilot, "Declined the invitation")
        await soon(
            pilot, lambda: "Needs me" not in shown(pilot.app) and "invites you" not in shown(pilot.app)
        )
        if keys:
            text = await press(pilot, "escape")
            assert "Needs me" not in text and "invites you" not in text
