"""What screens without rows show: why, and the keys that help."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from svc.api import connect
from svc.http.session import Sessions
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.client import Client
from tui.screens.command.palette import Help

__all__ = ["project"]
Open = Callable[..., SvcApp]
SIZES = [(80, 24), (100, 30), (140, 40)]


@pytest.fixture
def signed_out(open_app: Open, node: str, tmp_path: Path) -> Callable[[], SvcApp]:
    """Makes an app in which nobody is signed in."""

    def make() -> SvcApp:
        app = open_app()
        sessions = Sessions(tmp_path / "nobody")
        app.client = Client(node, "", lambda: connect(node, sessions), app.client.store)
        return app

    return make


@pytest.mark.parametrize("size", SIZES)
async def test_nobody_is_signed_in(signed_out: Callable[[], SvcApp], size: tuple[int, int]) -> None:
    async with signed_out().run_test(size=size) as pilot:
        text = await sees(pilot, "You are not signed in.", ":login", "signs in")
        assert "? keys here" in text.splitlines()[-1]
        text = await press(pilot, "i")
        assert "You are not signed in." in text and ":login" in text
        assert "w go to a repository" in text.splitlines()[-1] and "x done" not in text
        text = await press(pilot, "escape", "a")
        assert "You are not signed in." in text and ":login" in text
        assert "revoke" not in text.splitlines()[-1] and "? keys here" in text.splitlines()[-1]


@pytest.mark.parametrize("size", SIZES)
async def test_an_empty_account(alice: Svc, open_app: Open, size: tuple[int, int]) -> None:
    async with open_app().run_test(size=size) as pilot:
        text = await sees(pilot, "There is no repository of yours yet.", "repo create NAME makes")
        assert "all actions by name" in text and "…" not in text
        text = await press(pilot, "i")
        assert "✓ nothing new concerns you" in text and "opens a repository" in text
        assert "w go to a repository" in text.splitlines()[-1] and "x done" not in text


@pytest.mark.parametrize("size", SIZES)
async def test_a_repository_without_a_seal(alice: Svc, open_app: Open, size: tuple[int, int]) -> None:
    assert alice("repo", "create", "empty").code == 0
    steps = ("Nothing is sealed here yet.", "/empty", 'svc push -m "First seal"')
    async with open_app().run_test(size=size) as pilot:
        await settle(pilot)
        if size[0] >= 100:
            await sees(pilot, *steps)
        await press(pilot, "enter", "1")
        await sees(pilot, "1 branch", *steps, *(["─ first steps ─"] if size[0] >= 100 else []))


async def test_keys_about_a_row_are_offered_once_there_is_one(
    project: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        text = await sees(pilot, "no open issues; a opens one")
        assert "a new" in text.splitlines()[-1] and "c comment" not in text
        assert alice("issue", "create", "-t", "Stalls").code == 0
        await press(pilot, "r")
        text = await sees(pilot, "#1 Stalls", "c comment")
        assert "z close" in text


async def test_help_and_palette_have_motions_last(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 40)) as pilot:
        await settle(pilot)
        for keys in (["question_mark"], ["escape", "space"]):
            await press(pilot, *keys)
            screen = pilot.app.screen
            assert isinstance(screen, Help)
            names = [item.left[0][0] for item in screen.rows() if item.key is None]
            assert names[:2] == ["This row", "This screen"] and names[-1] == "Moving", names
            rows = [item for item in screen.rows() if item.key is not None]
            starts = {sum(len(part) for part, _ in item.left[:2]) for item in rows}
            assert len(starts) == 1, starts  # the commands begin in one column
