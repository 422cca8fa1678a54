"""The history of a file played step by step, by keys alone, against a real relay."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from svc.api import connect
from svc.flows.history import replay
from svc.http.session import Sessions
from tests.patience import PATIENCE
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.screens.code import replay as screen
from tui.screens.code.timeline import draw_timeline
from tui.tints import DARK_256
from tui.widgets.source import Source

__all__ = ["project"]
Open = Callable[..., SvcApp]


@pytest.fixture
def edited(project: str, alice: Svc) -> str:
    """The project, with two live updates behind the seal Third."""

    def updates() -> int:
        found = json.loads(alice("repo", "api", "repos/{id}/refs/branch/main").out)
        return int(found["frontier"])

    main = Path("src/main.py")
    assert alice("watch", "--detach").code == 0
    for text in ("    return 3\n", "    # three, and one\n    return 4\n"):
        before, until = updates(), time.monotonic() + PATIENCE
        main.write_text("def main():\n" + text)
        while updates() == before:
            assert time.monotonic() < until
            time.sleep(0.05)
    assert alice("watch", "stop", "--all").code == 0
    assert alice("push", "-m", "Third").code == 0
    return project


async def test_seals_and_the_updates_behind_them_step_by_step(
    edited: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "EACH", 3600.0)  # stepped by hand
    handle = f"@{os.environ['TEST_HANDLE']}"
    async with open_app().run_test(size=(140, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        await press(pilot, *"main", "enter")
        text = await press(pilot, "p")
        assert "▶ 1/" in text and "«First»" in text and "return 1" in text and handle in text
        assert [line.count("+ ") for line in text.splitlines() if "return 1" in line] == [1]
        text = await press(pilot, "right_square_bracket")
        assert "«Second»" in text and "return 2" in text and "❚❚ 2/" in text
        assert any("+     return 2" in line for line in text.splitlines())
        assert not any("+ def main" in line for line in text.splitlines())
        text = await press(pilot, "right_square_bracket")
        assert "edited live" in text and "return 3" in text and "❚❚ 3/4" in text
        text = await press(pilot, "right_square_bracket")
        assert "«Third»" in text and "return 4" in text and "+2 −0" in text and "❚❚ 4/4" in text
        assert "newest" in await press(pilot, "right_square_bracket")
        assert "╭─ replay ─" in text and "step 4 of 4" in text and "p play again" in text
        assert "●━" in text and "━•━" in text and "━◉" in text, "two seals, an edit, and this one"
        assert "return 3" in await press(pilot, "left")
        assert "return 2" in await press(pilot, "left_square_bracket")
        assert "return 3" in await press(pilot, "right")
        await press(pilot, "tab")
        await sees(pilot, "p go on")  # among the files too
        await press(pilot, "tab")
        text = await press(pilot, "escape")
        assert "return 4" in text and "edited live" not in text and "3 lines" in text


async def test_it_plays_by_itself_to_its_end_and_stops(
    edited: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "EACH", 0.05)
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "t")
        await press(pilot, *"main", "enter")
        await pilot.press("p")
        await sees(pilot, "❚❚ 4/4", "just now  +2")
        monkeypatch.setattr(screen, "EACH", 3600.0)
        await pilot.press("p")
        await sees(pilot, "▶ 1/4")
        await pilot.press("p")
        await sees(pilot, "❚❚")
        text = shown(pilot.app)  # type: ignore[arg-type]
        assert len(text.split("\n")) == 24
        hints = text.splitlines()[-1]
        assert "p go on" in hints and "[ or ← step back" in hints and "esc end the replay" in hints
        assert "┃" not in text and text.splitlines()[-3].count("●") == 2 and "◉" in text


async def test_without_a_file_it_says_what_to_do(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        assert "open a file first" in await press(pilot, "p")


def test_the_time_line_fits_and_says_where_one_is() -> None:
    def text(*words: object) -> str:
        return "".join(part for part, _ in draw_timeline(*words))  # type: ignore[arg-type]

    assert text([False, True, False], 1, 60) == "●━━━━━━━━━━━━◉────────────●"
    assert text([False, True], 1, 5) == "●━━━◉"
    assert text([False], 0, 10, False) == "◉ …"
    assert text([], -1, 10) == ""
    bars = [text([True] * 100, at, 21) for at in (0, 50, 99)]
    assert [bar.index("◉") for bar in bars] == [0, 10, 20] and {len(bar) for bar in bars} == {21}


def test_changed_lines_of_a_step_have_their_ground() -> None:
    rows = Source([(("a", "name"),), (("b", "text"),)], changed=[2], tints=DARK_256)
    assert rows[0].left == (("1 ", "gutter"), ("  ", "gutter"), ("a", "name"))
    assert rows[1].left == (("2 ", "on 22 add"), ("+ ", "on 22 add_mark"), ("b", "on 22 text"))
    assert rows[1].rest == "on 22 text"


def test_updates_that_do_not_lead_to_the_seal_are_left_out(
    edited: str, alice: Svc, node: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps between are shown only where they end in exactly the sealed text."""
    api = connect(node, Sessions(Path(os.environ["SVC_HOME"])))
    owner, name = edited.split("/")
    repo = api.repo.find(owner, name)
    from tui import contents

    seals = contents.history(repo.id, "main", "src/main.py").call(api)
    before = b"def main():\n    return 2\n"
    whole = replay.steps_of(api, repo.id, "src/main.py", seals[0], before)
    assert [step.live for step in whole] == [True, False]
    assert [step.live for step in replay.steps_of(api, repo.id, "src/main.py", seals[0], b"else\n")] == [
        False
    ]
    monkeypatch.setattr(replay, "UPDATES", 1)
    assert len(replay.steps_of(api, repo.id, "src/main.py", seals[0], before)) == 1
    assert json.loads(alice("log", "--json", "id").out)[0]["id"] == seals[0].id
