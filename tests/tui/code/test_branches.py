"""The card of branches and tags: the newest first, with what they are to the default branch."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.machine import Place

__all__ = ["project"]
Open = Callable[..., SvcApp]


def branch(alice: Svc, name: str, text: str) -> None:
    """Make a branch of main with a seal of its own."""
    assert alice("repo", "branch", name).code == 0
    assert alice("switch", name).code == 0
    Path("README.md").write_text(text)
    assert alice("push", "-m", f"Of {name}").code == 0
    assert alice("switch", "main").code == 0


async def test_branches_stand_in_one_card_with_the_newest_first(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "merged").code == 0
    branch(alice, "older", "# Older\n")
    Path("src/main.py").write_text("def main():\n    return 3\n")
    assert alice("push", "-m", "Third").code == 0
    assert alice("repo", "tag", "create", "v1").code == 0
    branch(alice, "newer", "# Newer\n")
    assert alice("switch", "newer").code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Newer", "-b", "Because.").code == 0
    assert alice("switch", "main").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "b")
        text = await sees(pilot, "↑1 ↓1", "↑1 ", "Branches 4", "Tags 1", "○ #1")
        rows = [re.sub(r" +", " ", row.split("│")[2]) for row in text.split("\n") if row.count("│") > 3]
        named = [row for row in rows if re.match(r"[ ▌]*(● )?[a-z]+\d?\b.*@", row)]
        assert [re.sub(r"[ ▌●]*", "", row, count=1).split()[0] for row in named] == [
            "newer",
            "main",
            "older",
            "merged",
            "v1",
        ]
        assert "● main default" in named[1] and "↑" not in named[1]
        assert "○ #1" in named[0] and "↑1" in named[0] and "↓" not in named[0]
        assert "↑1 ↓1" in named[2]
        assert "↓1" in named[3] and "↑" not in named[3]
        assert text.count("╭─") == 3 and "type to filter" in text, "one card over two panes"
        card = next(row for row in text.split("\n") if "type to filter" in row)
        assert card.index("│  / type") < card.index("type to filter") < card.rindex("│"), (
            "the field is in the card"
        )
        await press(pilot, *"old", "enter")
        await sees(pilot, "older @ ")


async def test_the_branch_of_the_folder_is_shown_also_if_it_is_newer_than_what_is_known(
    project: str, alice: Svc, open_app: Open
) -> None:
    place = Place(Path.cwd())
    async with open_app(place=place.read_again()).run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "  main @")
    assert alice("repo", "branch", "fresh").code == 0
    assert alice("switch", "fresh").code == 0
    async with open_app(place=place.read_again()).run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "  fresh @")
