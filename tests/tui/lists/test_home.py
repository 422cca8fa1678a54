"""Which repositories Home lists, and how the others are found."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from localstore.core.model import repo as repos_
from localstore.core.model.inbox import InboxItem
from localstore.core.model.repo import Repo
from tests.svc.conftest import Svc
from tests.tui.test_app import press, sees, settle
from tests.tui.test_app import project as project
from tui import reads
from tui.app import SvcApp
from tui.machine import Place
from tui.reads import Read
from tui.screens.choose import ChooseRepo

Open = Callable[..., SvcApp]


@pytest.fixture
def strange(alice: Svc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Id of a public repository called `abroad`, of somebody else."""
    mine = os.environ["SVC_HOME"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "theirs"))
    handle = f"{os.environ['TEST_HANDLE'][:30]}-ben"
    assert alice("login", "--device-key", "--handle", handle).code == 0
    assert alice("repo", "create", "abroad", "--public").code == 0
    found: str = alice("repo", "view", f"{handle}/abroad", "--json", "id", "--jq", ".id").out.strip()
    monkeypatch.setenv("SVC_HOME", mine)
    return found


async def test_home_lists_ones_own_and_w_finds_others(project: str, strange: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 24)) as pilot:
        text = await settle(pilot)
        assert project in text
        assert "abroad" not in text
        await press(pilot, "w")
        await press(pilot, *"abroad")
        await sees(pilot, "-ben/abroad")
        await press(pilot, "enter")
        await sees(pilot, "-ben/abroad", "8 Set")


async def test_the_folders_repository_is_on_home_whoever_owns_it(
    project: str, strange: str, open_app: Open
) -> None:
    place = Place(Path.cwd(), strange, "ben/abroad", "main")
    async with open_app(place=place).run_test(size=(99, 24)) as pilot:
        text = await settle(pilot)
        assert "abroad" in text
        assert project in text


async def test_the_chooser_says_of_a_repository_what_one_chooses_by(
    project: str, strange: str, open_app: Open
) -> None:
    place = Place(Path.cwd(), strange, "ben/abroad", "main")
    async with open_app(place=place).run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        text = await sees(pilot, "─ go to a repository ─", "Yours 2", "1 of 2", "  private  ")
        assert "abroad" in next(row for row in text.splitlines() if "▌" in row and "here" in row)
        await press(pilot, *"nowhere")
        await sees(pilot, "no repository that you may see is called like this")
        await press(pilot, "ctrl+u", *project)
        await sees(pilot, "1 of 1")
        await press(pilot, "enter")
        await sees(pilot, project, "8 Settings")


async def test_the_chooser_without_a_repository_says_how_to_make_one(alice: Svc, open_app: Open) -> None:
    with pytest.MonkeyPatch.context() as empty:
        empty.setattr(reads, "visible_repos", lambda: Read("visible_repos", list[Repo], lambda api: []))
        async with open_app().run_test(size=(99, 24)) as pilot:
            await settle(pilot)
            await press(pilot, "w")
            await sees(pilot, "there is no repository yet; esc, then :repo create NAME makes one")


async def test_an_answer_about_ones_own_drops_no_others(project: str, strange: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "w")
        begin = project[:40]  # long names are cut
        await sees(pilot, "-ben/abroad", begin)
        chooser = pilot.app.screen
        assert isinstance(chooser, ChooseRepo)
        chooser._paint_own([], 0.0)
        await pilot.pause()
        await sees(pilot, "-ben/abroad", f" of {len(chooser._others)} ─", begin)


async def test_an_inbox_that_cannot_be_read_is_not_called_empty(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        read = Read("inbox", list[InboxItem], lambda api: [api.send(repos_.GET, id="0")])
        broken.setattr(reads, "inbox", lambda: read)
        async with open_app().run_test(size=(99, 24)) as pilot:
            await sees(pilot, project, "Inbox not known; r asks again")
            broken.undo()
            await press(pilot, "r")
            await sees(pilot, project, "Inbox empty ✓")


async def test_the_keys_of_home_say_what_each_does(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 30)) as pilot:
        await settle(pilot)
        text = await press(pilot, "question_mark")
        row = next(row for row in text.splitlines() if "quit" in row)
        assert row[2:-2].strip(" │").split() == ["quit", "q", "ctrl+c"]  # within the frame of the card
        await press(pilot, "escape")
        assert "q quits" in await press(pilot, "escape")
