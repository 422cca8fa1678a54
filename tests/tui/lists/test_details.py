"""The run, Security, Insights, Sync and the account: what stands beside the row under the cursor."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from localstore.core.model.check import Rollup, SealCheck
from localstore.core.model.run import State
from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.screens.lists.runs import RunScreen
from tui.screens.proposal.words import checks_of

__all__ = ["project"]
Open = Callable[..., SvcApp]


def run_of(alice: Svc, name: str, *words: str) -> None:
    recorded = alice("repo", "run", "create", name, *words)
    assert recorded.code == 0, recorded.err


async def test_a_run_stands_beside_the_checks_of_its_seal(project: str, alice: Svc, open_app: Open) -> None:
    first = json.loads(alice("log", "--json", "id").out)[-1]["id"]
    run_of(alice, "lint", "--seal", first, "--conclusion", "success")
    run_of(alice, "docs", "--conclusion", "success")
    run_of(alice, "lint", "--conclusion", "failure", "--summary", "Two **lines**")
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "4")
        await sees(pilot, "Workflows 3", "What it changed 1", "Runs of lint 2")
        await press(pilot, "enter")
        text = await sees(
            pilot, "─ Checks and runs ─", "Other runs of", "the last 2, oldest to newest", "runs it again"
        )
        assert text.index("✗ fail") < text.index("✓ pass"), "what failed stands first"
        text = await sees(pilot, "What it changed 1", "M src/main.py", "+1 −1", "Runs of lint 2")
        assert "▌✗ fail" not in text, "the list on the left has the runs"
        shown = pilot.app.screen
        await press(pilot, "j")
        await sees(pilot, "2 of 3")
        assert pilot.app.screen is shown
        await pilot.resize_terminal(80, 24)
        await press(pilot, "g")
        assert "Checks of" in await settle(pilot), "there is no room beside it, so they stand below"


async def test_a_run_names_the_proposal_that_brings_its_seal(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "topic").code == 0
    assert alice("switch", "topic").code == 0
    Path("src/main.py").write_text("def main():\n    return 3\n")
    assert alice("push", "-m", "Return three").code == 0
    assert alice("pr", "create", "--base", "main", "-t", "Three is better", "-b", "Because.").code == 0
    run_of(alice, "lint", "--conclusion", "failure")
    async with open_app().run_test(size=(200, 50)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "4")
        await sees(pilot, "Workflows 1")
        await press(pilot, "G")
        await sees(pilot, "Proposals 1", "#1 Three is better", "○ open", "Return three", "on topic")


async def test_another_attempt_is_shown_when_it_is_there(project: str, alice: Svc, open_app: Open) -> None:
    run_of(alice, "lint", "--conclusion", "failure")
    for width in (120, 80):
        async with open_app().run_test(size=(width, 30)) as pilot:
            await settle(pilot)
            await press(pilot, "enter", "4", "G", "enter")
            await sees(pilot, "runs it again", "✗ fail")
            await press(pilot, "u")
            await sees(pilot, "nobody has begun it yet", "◌ queued")
        run_id = json.loads(alice("repo", "run", "list", "--json", "id").out)[0]["id"]
        assert alice("repo", "run", "update", run_id, "--conclusion", "failure").code == 0


async def test_the_next_attempt_follows_the_newest(project: str, alice: Svc, open_app: Open) -> None:
    run_of(alice, "lint", "--conclusion", "failure")
    run_of(alice, "lint", "--conclusion", "failure")
    run_of(alice, "wheels")
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "4", "G")
        await sees(pilot, "▌✗ fail")
        assert "asked for attempt 3 of lint" in await press(pilot, "u")
        await press(pilot, "g", "enter")
        screen = pilot.app.screen
        assert isinstance(screen, RunScreen)
        await sees(pilot, "Checks and runs", "wheels")
        screen.listed.show(screen.listed.rows, ("check", "wheels"))
        assert "wheels is not completed" in await press(pilot, "u")
        assert screen._run is not None and screen._run.name == "lint" and not screen._attempts


async def test_a_check_that_runs_again_keeps_the_cursor(project: str, alice: Svc, open_app: Open) -> None:
    """The list sorts its checks anew when one runs again. `x` is then about the check that was chosen, and
    what was chosen since stays chosen."""
    for name in ("lint", "wheels"):
        run_of(alice, name, "--conclusion", "failure")
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "4")
        await sees(pilot, "▌✗ fail    lint", "runs it again")
        await press(pilot, "u")
        await sees(pilot, "▌◌ queued  lint", "nobody has begun it yet")
        await press(pilot, "x")
        await sees(pilot, "▌⊘ cancel  lint", "✗ fail    wheels")
        await press(pilot, "u")
        await sees(pilot, "▌◌ queued  lint")
        await press(pilot, "enter", "g")
        await sees(pilot, "▌  ✗ fail    wheels")
        await press(pilot, "u", "G")
        await sees(pilot, "◌ queued  wheels")
        text = await settle(pilot)
        assert "▌  ◌ queued  wheels" not in text, "the cursor was moved since, and stays where it is"


async def test_security_says_which_branches_are_protected(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "branch", "topic").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "6")
        text = await sees(pilot, "✓ nothing known", "0 of 2 branches protected", "no rule: whoever may write")
        assert "8 opens Settings, where Branch" in text
        assert alice("repo", "protect", "set", "main", "--required-approvals", "2").code == 0
        await press(pilot, "r")
        text = await sees(pilot, "1 of 2 branches protected", "✓ 2 approvals")
        assert "○ required checks: not asked" in text and "approvals: not asked" not in text
        text = await sees(pilot, "✗ push to it without a proposal", "✓ merge a proposal: 2 approvals")
        assert "✗ delete it" in text and "main  set by @" in text, "who set the rule"
        await press(pilot, "j")
        await sees(pilot, "─ main ─", "kept from deletion")
        await press(pilot, "G")
        text = await sees(pilot, "branches  main", "now       main", "What it means", "Who set it")
        assert "A merge needs 2 approvals" in text and "may write pushes" not in text


async def test_security_names_checks_only_where_a_rule_asks_for_them(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "checks", "enable", "ci/new").code == 0
    assert alice("repo", "protect", "set", "main", "--require-review").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "6")
        text = await sees(pilot, "main is the default branch", "no rule here asks for them: no")
        assert "queued" not in text and "ci/new" not in text
        assert alice("repo", "protect", "set", "main", "--require-review", "--require-checks").code == 0
        await press(pilot, "r")
        await sees(pilot, "asked for by main", "· never ran  ci/new", "1 approval, check ci/new")


async def test_security_shows_the_reports_that_wait_for_a_decision(
    project: str, alice: Svc, open_app: Open
) -> None:
    told = alice("repo", "reports", "create", "-t", "Tokens leak", "-b", "See *log*.", "--severity", "high")
    assert told.code == 0
    report = json.loads(alice("repo", "reports", "list", "--json", "id").out)[0]["id"]
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "6")
        text = await sees(
            pilot, "! 1 report", "Reports in confidence 1", "▲ high     Tokens leak", "decides a"
        )
        assert "nothing known" not in text
        heads = ("What needs you ─", "Advisories about this repository ─")
        assert any(all(head in row for head in heads) for row in text.splitlines()), "beside each other"
        await press(pilot, "j")
        text = await sees(pilot, "│ See log.", "Decide it ─", "--published  an advisory tells everybody")
        assert (
            "▲ high     ● new" in text and "╭─ @" in text and f":repo reports decide {report[:8]} …" in text
        )
        await press(pilot, "enter")
        await sees(pilot, "done", "svc repo reports view", "See *log*.")
        assert alice("repo", "reports", "decide", report, "--dismissed").code == 0
        await press(pilot, "escape", "r")
        await sees(pilot, "✓ nothing known", "✓ all are decided")


async def test_a_branch_without_a_rule_leads_to_a_new_rule_for_it(
    project: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "branch", "topic").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "6")
        await sees(pilot, "topic", "no rule")
        await press(pilot, "j", "j", "enter")
        await sees(pilot, "branches topic", "no rule yet: S makes it")
        await press(pilot, "enter", "end", "ctrl+u", "1", "enter", "S", "escape")
        await sees(pilot, "Protection rules 1", "enter open the rule")
        await press(pilot, "enter")
        await sees(pilot, "branches topic", "approvals            1")
        await press(pilot, "escape", "e")
        await sees(pilot, "▌  topic", "1 approval")


async def test_the_keys_of_tabs_lead_out_of_a_row(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("issue", "create", "-t", "It stalls").code == 0
    run_of(alice, "lint", "--conclusion", "failure")
    assert alice("repo", "release", "create", "v1", "--notes", "First").code == 0
    async with open_app().run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "#1  It stalls")
        await press(pilot, "4")
        await sees(pilot, "Workflows 1", "✗ fail")
        await press(pilot, "enter")
        await sees(pilot, "─ Checks and runs ─")
        await press(pilot, "5")
        await sees(pilot, "─ Releases 1 ─", "v1")
        await press(pilot, "enter", "3")
        await sees(pilot, "Issues open · 1")
        depth = len(pilot.app.screen_stack)
        await press(pilot, "escape")
        assert len(pilot.app.screen_stack) == depth - 1


async def test_insights_draw_what_was_done(project: str, alice: Svc, open_app: Open) -> None:
    run_of(alice, "lint", "--conclusion", "failure")
    run_of(alice, "unit", "--conclusion", "success")
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "7")
        await sees(pilot, "Activity of main", "50 % of 2 runs", "Seals a week", "this week", "Second")
        await sees(pilot, "Activity of the repository", "none in 12 weeks", "py ", "0 open  0 closed")
        assert "this week     2" in await settle(pilot), "one week with data is one row, without a bar"
        await press(pilot, "j")
        await sees(pilot, "Who sealed in 12 weeks", " 2")
        await press(pilot, "j")
        text = await sees(pilot, "How often checks of the repository pass", "100 %", "oldest to newest")
        assert text.index("lint ") < text.index("unit "), "what fails most stands first"
        await press(pilot, "enter")
        await sees(pilot, "─ Workflows 2 ─")


async def test_an_empty_repository_has_no_insights_yet(alice: Svc, open_app: Open) -> None:
    assert alice("repo", "create", "empty").code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "7")
        await sees(pilot, "Activity of main", "no run yet", "Dependents 0")


async def test_sync_shows_what_waits_and_why_it_was_refused(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("issue", "create", "-t", "Crash").code == 0
    assert alice("issue", "comment", "1", "-b", "Later *then*", "--queue").code == 0
    assert alice("repo", "archive", "--yes").code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await sees(pilot, "● live")
        await press(pilot, "s")
        await sees(pilot, "─ connection ─", "server    http", "none is watched")
        await sees(pilot, "✗ refused", "The lights", "● live ")
        await press(pilot, "z")
        await sees(pilot, "put the cursor on a watched folder; z pauses it, Z zooms")
        await press(pilot, "G")
        text = await sees(pilot, "─ action ─", "tried", "archived", "Later then")
        assert "*then*" not in text


async def test_the_account_shows_what_a_row_is(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "a")
        await sees(pilot, "─ Account of @", "the key of a device", "this machine is signed out then")
        await sees(pilot, " left", "Sessions by kind 1", "Repositories 1", "owner")
        await press(pilot, "j", "j")
        await sees(pilot, "public key", "Sessions 1", "signs nothing from then on")
        await press(pilot, "j")
        await sees(pilot, "─ another device ─", "--pair CODE")


async def test_a_locked_branch_takes_no_merge(project: str, alice: Svc, open_app: Open) -> None:
    words = ("--require-review", "--required-approvals", "2", "--lock-writes")
    assert alice("repo", "protect", "set", "main", *words).code == 0
    async with open_app().run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "6")
        text = await sees(pilot, "What you may do", "2 approvals, locked", "✗ merge a proposal")
        assert "review, " not in text


def test_checks_that_were_only_cancelled_have_not_failed() -> None:
    def of(*states: State) -> list[SealCheck]:
        return [SealCheck(state, state, False, 1, None, None, "a" * 64, None, None, "r") for state in states]

    assert checks_of(Rollup(2, 0, 2, 0), of("cancel", "fail")) == ("✗ fail", "bad")
    assert checks_of(Rollup(2, 1, 1, 0), of("pass", "cancel")) == ("⊘ cancel", "warn")
    assert checks_of(Rollup(2, 1, 1, 0)) == ("✗ 1 failed", "bad")
