"""The card in which a proposal is merged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from textual._compositor import LayoutUpdate

from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import head, proposal
from tests.tui.test_app import open_proposal, press, project, sees, settle, soon
from tui.app import SvcApp
from tui.screens.proposal.merge import WAYS
from tui.screens.proposal.screen import ProposalScreen

__all__ = ["project", "proposal"]
Open = Callable[..., SvcApp]


async def test_a_head_that_moved_since_the_card_opened_is_not_merged(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    first = head(alice)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "● live", "main ← topic")
        await press(pilot, "M")
        await sees(pilot, "merge #1", f"head          {first[:12]}", "▌fast-forward")
        Path("src/main.py").write_text("def main():\n    return 5\n")
        assert alice("push", "-m", "Five").code == 0
        text = await sees(pilot, "somebody pushed", f"head          {first[:12]}")
        second = text.split("somebody pushed ")[1][:12]
        assert second != first[:12]
        await press(pilot, "enter")
        await sees(pilot, "✗", f"moved to {second}; look at it again", "esc leaves")
        await press(pilot, "escape")
        await sees(pilot, "○ open", second[:8])
        await press(pilot, "M")
        await sees(pilot, f"head          {second}")
        await press(pilot, "enter")
        await sees(pilot, "✓ Merged #1", "esc leaves")
    assert json.loads(alice("pr", "view", "1", "--json", "state").out)["state"] == "merged"


async def test_the_card_is_one_key_away_from_the_files_too(proposal: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because it is odd.")
        await press(pilot, "enter")
        await sees(pilot, "0 seen")
        await press(pilot, "M")
        await sees(pilot, "merge #1", "▌fast-forward")
        await press(pilot, "escape")
        await sees(pilot, "Because it is odd.")


async def test_the_card_knows_what_has_changed_while_the_files_were_in_front(
    proposal: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice("repo", "protect", "set", "main", "--required-approvals", "1").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "Because it is odd.", "needs an approval")
        await press(pilot, "enter")
        await sees(pilot, "0 seen")
        assert isinstance(pilot.app, SvcApp)
        pilot.app.news.following.close()  # no event tells the card
        assert alice("repo", "protect", "clear", "main", "--yes").code == 0
        behind = pilot.app.screen_stack[-2]
        assert isinstance(behind, ProposalScreen)
        monkeypatch.setattr(ProposalScreen, "do_refresh", lambda screen: None)  # it comes later than the card
        text = await press(pilot, "M")
        assert "merge #1" in text and "cannot be merged now" not in text
        assert behind._key_of("approve") == "A", "it names its own keys, also behind a card"


async def test_the_card_lies_over_the_proposal(proposal: str, alice: Svc, open_app: Open) -> None:
    """The screen below stays visible around the frame, and its light in its title."""
    app = open_app()
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "● live", "Because it is odd.")
        await press(pilot, "M")
        await sees(pilot, "merge #1")
        rows = painted(app)
        card = app.screen.query_one("#card").region
        assert (card.width, card.x) == (80, 30)
        assert rows[0].rstrip().endswith("● live") and "Return three" in rows[0]
        assert any("Because it is odd." in row for row in rows[:8]), rows
        assert "merge #1  Return three" in rows[card.y] and "enter merge this way" in rows[-1]


async def test_a_card_says_which_of_its_choices_is_under_the_cursor(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    """Where not all rows are visible; rows that cannot be chosen do not count."""
    async with open_app().run_test(size=(100, 14)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "main ← topic")
        await press(pilot, "M")
        await sees(pilot, "▌fast-forward", f"─ 1 of {len(WAYS)} ─")
        await press(pilot, "j")
        await sees(pilot, f"─ 2 of {len(WAYS)} ─")


def painted(app: SvcApp) -> list[str]:
    """The rows of a terminal that shows the app, also what lies below a card."""
    update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
    assert isinstance(update, LayoutUpdate)
    return ["".join(strip.text for strip in strips) for strips in update.strips]


async def test_the_talk_says_how_many_approvals_and_which_checks_a_merge_needs(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "checks", "enable", "ci/new").code == 0
    assert alice("repo", "protect", "set", "main", "--required-approvals", "2").code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        text = await sees(pilot, "blocked   it needs 2 approvals", "missing ci/new")
        assert "required" not in text, "the rule of the base asks for no check"
        await press(pilot, "M")
        assert "required" not in await sees(pilot, "✗ it needs 2 approvals")
        await press(pilot, "escape")
        set_rule = ("repo", "protect", "set", "main", "--required-approvals", "2", "--require-checks")
        assert alice(*set_rule).code == 0
        await press(pilot, "r")
        await sees(pilot, "missing ci/new  required")


async def test_what_blocks_a_merge_is_listed_with_the_ways_on(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    """A proposal that waits for an approval can be signed now; the card says by whom, and takes it back. What
    lies behind the card says at once that it is merged."""
    assert alice("repo", "protect", "set", "main", "--required-approvals", "1").code == 0
    app = open_app()
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await open_proposal(pilot, "enter", "3", "p")
        await sees(pilot, "● live", "main ← topic")
        await press(pilot, "M")
        text = await sees(
            pilot, "It cannot be merged now", "✗ ", "as soon as nothing blocks it", "enter sign it"
        )
        assert "✗ it needs an approval" in text and "enter sign it now" in text
        assert "delete the branch" not in text
        await press(pilot, "j", "enter")
        await sees(pilot, "✓ ", "esc leaves")
        assert "sign it" not in shown(app)
        await press(pilot, "escape")
        text = await sees(pilot, "merge     ◷ merges when it is approved  squash,", "M cancel the merge")
        assert "M to cancel it" in " ".join(text.replace("│", " ").split())
        assert "blocked" not in text and "needs an approval" not in text  # which is said once
        await press(pilot, "escape")
        await sees(pilot, "◇ needs review  ◷ then merges")
        for size in ((120, 30), (200, 40)):
            await pilot.resize_terminal(*size)
            text = await sees(pilot, "◷ merges when it is approved", "squash, signed by")
            assert text.count("merges when") == 1 and "it waits" not in text
        await pilot.resize_terminal(100, 30)
        await press(pilot, "enter", "r", "M")
        await sees(pilot, "◷ merges when it is approved", "squash, signed by @")
        text = await sees(pilot, "▌cancel it", "enter cancel the merge that waits")
        assert "needs an approval" not in text  # which is said once
        await press(pilot, "enter")
        await sees(pilot, "✓ ", "esc leaves")
        await press(pilot, "escape")
        await press(pilot, "r", "M")
        await sees(pilot, "as soon as nothing blocks it")  # nobody has signed it any more
        await press(pilot, "escape")
        assert alice("repo", "protect", "clear", "main", "--yes").code == 0
        await press(pilot, "r", "M")
        await sees(pilot, "▌fast-forward")
        await press(pilot, "enter")
        await sees(pilot, "✓ Merged #1")
        await soon(pilot, lambda: any("● merged" in row for row in painted(app)))
