"""The rows of the specification about Settings: done in the app by keys, then looked at through the API."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from textual.pilot import Pilot

from localstore.core.model.protection import ProtectionSet
from svc.cmd.frame.app import run
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import other, proposal
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import NOWHERE, waiting
from tui.app import SvcApp
from tui.screens.base import Base
from tui.screens.repo import RepoScreen
from tui.screens.settings import general, listing, rule
from tui.screens.settings.meanings import meaning
from tui.screens.settings.rule_words import NO_CHECK, sentences
from tui.screens.settings.settings import PANELS as PANELS_OF_SETTINGS
from tui.widgets.lines import Lines

__all__ = ["other", "project", "proposal"]
Open = Callable[..., SvcApp]

ROWS = {
    "set.panel.general": "test_the_eight_panels",
    "set.panel.listing": "test_the_eight_panels",
    "set.panel.upstream": "test_the_eight_panels",
    "set.panel.marketplace": "test_the_eight_panels",
    "set.panel.access": "test_the_eight_panels",
    "set.panel.automation": "test_the_eight_panels",
    "set.panel.checks": "test_the_eight_panels",
    "set.panel.lifecycle": "test_the_eight_panels",
    "set.general.default-branch": "test_general",
    "set.general.handle": "test_general",
    "set.listing.name": "test_listing",
    "set.listing.category": "test_listing",
    "set.listing.screenshots": "test_listing",
    "set.listing.readme-images": "test_listing",
    "set.upstream.git-host": "test_what_has_no_route_says_so",
    "set.upstream.model-hub": "test_what_has_no_route_says_so",
    "set.upstream.hourly-drafts": "test_what_has_no_route_says_so",
    "set.marketplace.sale": "test_what_has_no_route_says_so",
    "set.access.collaborators": "test_access",
    "set.access.invitations": "test_access",
    "set.checks.must-pass": "test_checks",
    "set.lifecycle.visibility": "test_lifecycle",
    "set.lifecycle.archive": "test_lifecycle",
    "set.lifecycle.delete": "test_lifecycle",
}
PANELS = (
    "General",
    "Listing",
    "Access",
    "Automation",
    "Checks",
    "Branch rules",
    "Lifecycle",
)


def test_each_row_has_its_test() -> None:
    assert len(ROWS) == 24
    assert sorted(name for name in set(ROWS.values()) if not callable(globals().get(name))) == []


async def opened(pilot: Pilot[None]) -> str:
    """The settings of the first repository."""
    await settle(pilot)
    await press(pilot, "enter")
    return await press(pilot, "8")


def listed(pilot: Pilot[None]) -> Lines:
    """The list that keys move in."""
    screen = pilot.app.screen
    assert isinstance(screen, Base) and screen.lines is not None
    return screen.lines


async def to(pilot: Pilot[None], *key: str) -> str:
    """Go down to the row with this key, by j alone."""
    await press(pilot, "g")
    lines = listed(pilot)
    for _ in range(len(lines.rows)):
        if lines.key == key:
            return await settle(pilot)
        await pilot.press("j")
    raise AssertionError(f"{key} is not among {[lines.rows[n].key for n in range(len(lines.rows))]}")


async def typed(pilot: Pilot[None], text: str) -> str:
    """Replace what the prompt holds."""
    await pilot.press("end", "ctrl+u", *(("space" if c == " " else c) for c in text))
    return await press(pilot, "enter")


def said(*words: str) -> str:
    """What a command prints while an app runs, which takes the standard output for itself."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(list(words)) == 0, (words, out.getvalue())
    return out.getvalue()


def got(path: str = "repos/{id}") -> dict[str, Any]:
    """What the API says."""
    found = json.loads(said("repo", "api", path))
    assert isinstance(found, dict)
    return found


async def test_the_eight_panels(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 60)) as pilot:
        lines = [line.strip() for line in (await opened(pilot)).split("\n")]
        assert [line for line in lines if line in PANELS] == list(PANELS)
        first = [str(listed(pilot).key)]
        for _ in range(6):
            await press(pilot, "right_curly_bracket")
            first.append(str(listed(pilot).key))
        assert [key.split("'")[1] for key in first] == list(PANELS)
        await press(pilot, "left_curly_bracket")
        assert listed(pilot).key[0] == "Branch rules"  # type: ignore[index]


async def test_what_has_no_route_says_so(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 60)) as pilot:
        text = await opened(pilot)
        assert "Upstream source, Marketplace: not in this version of svc" in text


async def test_a_row_is_explained_beside_the_list(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Lifecycle", "delete", "")
        await sees(pilot, "Delete the repository with its issues", "can be restored for 30 days")
        text = await press(pilot, "question_mark")
        assert re.search("This row.*\n.*delete +enter", text), "the help says the same of enter"
        await press(pilot, "escape")
        await to(pilot, "General", "field", "default_branch")
        await sees(pilot, "The branch that people see first", "enter change")


def test_each_row_has_a_meaning() -> None:
    rows = {(panel.NAME, kind) for panel in PANELS_OF_SETTINGS for kind in panel.RIGHTS}
    rows |= {("General", field.name) for field in general.FIELDS}
    rows |= {("Listing", field.name) for field in listing.FIELDS}
    rows |= {("rule", field.name) for field in rule.FIELDS}
    without = {(panel, kind) for panel, kind in rows if not meaning(panel, kind, kind)}
    assert without <= {(panel, kind) for panel in ("General", "Listing") for kind in ("field", "save")}


async def test_general(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "branch", "topic").code == 0
    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "General", "field", "default_branch")
        await press(pilot, "enter")
        text = await press(pilot, *"topic", "enter")
        assert "* default branch" in text and "topic  was main" in text
        await to(pilot, "General", "field", "name")
        await press(pilot, "enter")
        text = await typed(pilot, "no good")
        assert "✗ " in text and "* handle" in text
        assert "nothing was sent" in await press(pilot, "S")
        assert got()["default_branch"] == "main"
        await to(pilot, "General", "field", "name")
        await press(pilot, "enter")
        text = await typed(pilot, "journal")
        assert "2 changes not saved" in text
        text = await press(pilot, "S")
        assert "not saved" not in text
        owner = os.environ["TEST_HANDLE"]
        assert f"{owner}/journal" in await settle(pilot)
    found = got()
    assert (found["full_name"], found["default_branch"]) == (f"{owner}/journal", "topic")
    assert json.loads(said("repo", "view", f"{owner}/project", "--json", "name"))["name"] == "journal"
    assert alice("repo", "create", "project").code == 1
    assert alice("repo", "clone", f"{owner}/journal", "copy").code == 0
    assert waiting(alice) == []


async def test_changes_that_were_not_saved_come_back(project: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "General", "field", "description")
        await press(pilot, "enter")
        assert "* description" in await typed(pilot, "Better")
    drafts = Path(os.environ["SVC_HOME"]) / "drafts"
    assert [file.stat().st_mode & 0o777 for file in drafts.iterdir()] == [0o600]
    async with open_app().run_test(size=(99, 60)) as pilot:
        assert "Better  was Notes on parsing" in await opened(pilot)
        assert "not saved" not in await press(pilot, "U")
        assert list(drafts.iterdir()) == []
    assert got()["description"] == "Notes on parsing"


async def test_a_setting_changed_without_the_server_is_sent_later(
    project: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
    async with open_app(NOWHERE).run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "General", "field", "description")
        await press(pilot, "enter")
        await typed(pilot, "Better")
        text = await press(pilot, "S")
        assert "⋯ description" in text and "Better  queued" in text
        assert "change the description of the repository" in text
        await to(pilot, "Lifecycle", "archive", "")
        await press(pilot, "enter")
        assert "⋯ yes, queued" in await press(pilot, "y")
    assert waiting(alice) == ["change the description of the repository", "archive the repository"]
    async with open_app().run_test(size=(99, 60)) as pilot:
        await settle(pilot)
        assert "archived             yes" in await opened(pilot)
    assert got()["description"] == "Better"
    assert waiting(alice) == []


async def test_listing(project: str, alice: Svc, open_app: Open) -> None:
    Path("docs").mkdir()
    Path("docs/app.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert alice("push", "-m", "Picture").code == 0
    assert alice("repo", "visibility", "public", "--yes").code == 0
    async with open_app().run_test(size=(99, 60)) as pilot:
        assert "not listed yet" in await opened(pilot)
        for field, value in (("name", "Field notes"), ("category", "Writing")):
            await to(pilot, "Listing", "field", field)
            await press(pilot, "enter")
            await typed(pilot, value)
        await to(pilot, "Listing", "field", "screenshots")
        await press(pilot, "enter")
        assert "docs/app.png" in await press(pilot, "enter")
        await to(pilot, "Listing", "field", "readme_images")
        await press(pilot, "enter")
        assert "4 changes not saved" in await press(pilot, *"upstream", "enter")
        text = await press(pilot, "S")
        assert "in the catalog" in text, text
        found = got("repos/{id}/listing")
        shown = (found["name"], found["category"], found["screenshots"], found["readme_images"])
        assert shown == ("Field notes", "Writing", ["docs/app.png"], "upstream")
        await to(pilot, "Listing", "field", "screenshots")
        await press(pilot, "enter", "enter")
        await to(pilot, "Listing", "field", "category")
        await press(pilot, "enter")
        await typed(pilot, " ")
        await press(pilot, "S")
        found = got("repos/{id}/listing")
        assert (found["name"], found["category"], found["screenshots"]) == ("Field notes", None, [])
        await to(pilot, "Listing", "remove", "")
        await press(pilot, "enter")
        assert "not listed yet" in await typed(pilot, "Field notes")
    assert alice("repo", "api", "repos/{id}/listing").code == 1


async def test_access(proposal: str, other: Callable[..., None], alice: Svc, open_app: Open) -> None:
    ben = os.environ["TEST_HANDLE"][:30] + "-b"
    people = "repos/{id}/collaborators"

    def roles() -> dict[str, tuple[str, str]]:
        return {one["account"]["handle"]: (one["role"], one["state"]) for one in got(people)["items"]}

    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await press(pilot, "a")
        await press(pilot, *ben, "enter")
        text = await press(pilot, *"triage", "enter")
        assert "triage  * invited" in text
        assert ben not in roles()
        other("repo", "invite", "accept")
        text = await press(pilot, "r")
        assert f"@{ben}" in text and "invited" not in text
        await to(pilot, "Access", "person", ben)
        assert "● triage" in await press(pilot, "enter")
        await press(pilot, "enter")  # the cursor begins on the role of now
        assert roles()[ben] == ("triage", "active")
        await press(pilot, "enter")
        await press(pilot, *"write", "enter")
        assert roles()[ben] == ("write", "active")
        await to(pilot, "Access", "person", ben)
        await press(pilot, "enter")
        await press(pilot, *"remove", "enter")
        assert "that is not its name" in await typed(pilot, "somebody")
        await press(pilot, "enter")
        await press(pilot, *"remove", "enter")
        await typed(pilot, ben)
        assert f"  @{ben}" not in await sees(pilot, f"@{ben} has no role here any more")
        assert ben not in roles()
        await press(pilot, "a")
        await press(pilot, *ben, "enter", *"read", "enter")
        invite = got("repos/{id}/invites")["items"][0]["id"]
        await to(pilot, "Access", "invited", invite)
        await press(pilot, "enter")
        assert "invited" not in await press(pilot, "y")
        await to(pilot, "Access", "path", "+")
        await press(pilot, "enter")
        await press(pilot, *"src", "enter")
        assert "src                  private" in await press(pilot, *"private", "enter")
        assert got("repos/{id}/paths")["items"][0]["visibility"] == "private"
        await to(pilot, "Access", "path", "src")
        await press(pilot, "enter", *"remove", "enter")
        assert "src " not in (await typed(pilot, "src")).split("Access")[1].split("Automation")[0]
    assert got("repos/{id}/paths")["items"] == []


async def test_members_of_the_owning_organisation(project: str, alice: Svc, open_app: Open) -> None:
    org = os.environ["TEST_HANDLE"][:30] + "-o"
    assert alice("org", "create", org).code == 0
    assert alice("repo", "transfer", org, "--org", "--yes").code == 0
    offered = json.loads(said("repo", "transfer-list", "--json", "id"))[0]["id"]
    assert alice("repo", "transfer-accept", offered, "--yes").code == 0
    async with open_app().run_test(size=(99, 60)) as pilot:
        text = await opened(pilot)
        assert f"the organisation {org}" in text
        assert f"admin of {org}" in text
        await to(pilot, "Access", "member", os.environ["TEST_HANDLE"])
        await press(pilot, "enter")
        text = await press(pilot, *"member", "enter")
        assert "refused" in text


async def test_checks(project: str, alice: Svc, open_app: Open) -> None:
    """The names of checks that have run are offered, and others can be typed. A rule says of each row what it
    means, and what it demands of a merge without contradiction."""
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    assert alice("repo", "run", "create", "lint", "--seal", seal).code == 0
    async with open_app().run_test(size=(100, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "Checks", "check", "lint")
        await sees(pilot, "lint  ", "- not required  ◌ queued now", "A required check has to pass")
        await press(pilot, "c")
        await press(pilot, *"ci/test", "enter")
        await sees(pilot, "ci/test has never run here. Require it?")
        await press(pilot, "y")
        await sees(pilot, "Check ci/test is among the required checks now", "ci/test              ✓ required")
        assert got("repos/{id}/checks")["items"][0]["enabled"] is True
        await press(pilot, "c")
        assert "☑ ci/test" in await settle(pilot)
        await press(pilot, *"lint", "enter")
        await sees(pilot, "Check lint is among the required checks now")
        await to(pilot, "Branch rules", "protect", "")
        await press(pilot, "enter")
        text = await typed(pilot, "main")
        assert "rule for branches main" in text and "x remove" not in text
        assert "approvals            0 (none)" in text and "a review" not in text
        assert "refused by any rule" in text
        await to(pilot, "rule", "said", "deletion")
        await sees(pilot, "Nobody deletes a branch that a rule matches")
        await to(pilot, "rule", "said", "branches")
        await sees(pilot, "that match now       main", "the strictest counts")
        await to(pilot, "rule", "field", "required_approvals")
        await sees(pilot, "How many people have to approve")
        await press(pilot, "enter")
        assert "many is not a number" in await typed(pilot, "many")
        assert "nothing was sent" in await press(pilot, "S")
        await press(pilot, "enter")
        await typed(pilot, "2")
        await to(pilot, "rule", "field", "require_checks")
        await sees(pilot, "Required  c chooses", "✓ ci/test", "✓ lint")
        assert "2 changes not saved" in await press(pilot, "enter")
        assert "not saved" not in await press(pilot, "S")
        stored = got("repos/{id}/protections")["items"][0]
        assert (stored["pattern"], stored["required_approvals"], stored["require_checks"]) == (
            "main",
            2,
            True,
        )
        assert "2 approvals, checks " in await press(pilot, "escape")
        await to(pilot, "Branch rules", "rule", "main")
        await sees(pilot, "branches now: main")
        await to(pilot, "Checks", "check", "ci/test")
        await press(pilot, "enter")
        assert "▌  ci/test" not in await sees(pilot, "Check ci/test is no required check any more")
        await to(pilot, "Branch rules", "rule", "main")
        await press(pilot, "enter", "x")
        await sees(pilot, "Remove the rule for main?", "U brings")
        await press(pilot, "y")
        await sees(pilot, "no rule yet: S makes it")
    assert got("repos/{id}/protections")["items"] == []


def test_a_rule_says_nothing_of_checks_and_branches_before_they_are_read() -> None:
    screen = rule.RuleScreen(None, "main", ProtectionSet())  # type: ignore[arg-type]
    assert screen._matching_words() == "not read yet"
    assert screen._check_rows(40) == [(("not read yet", "dim"),)]


async def test_a_rule_keeps_what_the_form_does_not_show(project: str, alice: Svc, open_app: Open) -> None:
    """A review that is required without a number is one approval. The flag about deletion, which changes
    nothing, stays as it was."""
    assert alice("repo", "protect", "set", "main", "--require-review", "--lock-deletions").code == 0
    async with open_app().run_test(size=(80, 40)) as pilot:
        assert "main                 1 approval" in await opened(pilot)
        await to(pilot, "Branch rules", "rule", "main")
        text = await press(pilot, "enter")
        assert "approvals            1" in text
        await sees(pilot, "How many people have to approve")
        await press(pilot, "j")
        await sees(pilot, "An approval no longer counts")
        await to(pilot, "rule", "field", "fresh_approvals")
        await press(pilot, "enter")
        await press(pilot, "S")
    stored = got("repos/{id}/protections")["items"][0]
    flags = ("require_review", "lock_deletions", "fresh_approvals")
    assert [stored[flag] for flag in (*flags, "required_approvals")] == [True, True, True, 1]


async def test_a_rule_says_what_it_means_and_comes_back(project: str, alice: Svc, open_app: Open) -> None:
    """Sentences say what the rule means as the form stands. What was saved or removed is undone by one
    key."""
    assert alice("repo", "checks", "enable", "lint").code == 0

    def rules() -> list[tuple[str, int, bool]]:
        items = got("repos/{id}/protections")["items"]
        return [(each["pattern"], each["required_approvals"], each["require_checks"]) for each in items]

    async with open_app().run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await to(pilot, "Branch rules", "protect", "")
        await press(pilot, "enter", *"main", "enter")  # nothing is in the prompt before that
        await sees(pilot, "no rule yet: S makes it", "Whoever has the role write pushes to it")
        await press(pilot, "plus", "plus")
        await sees(pilot, "approvals            2  was 0", "A merge needs 2 approvals.", "not saved yet")
        await press(pilot, "minus")
        await to(pilot, "rule", "field", "fresh_approvals")
        await press(pilot, "enter")
        await sees(pilot, "A merge needs 1 approval of the newest version.")
        await press(pilot, "c")
        await press(pilot, *"unit", "enter", "y")
        await sees(pilot, "required checks      ✓ yes  was - no", "the checks lint, unit to")
        text = await sees(pilot, "which (all rules)    lint, unit  was lint", "Once saved, it means")
        assert "that match now" in text, "the whole rule fits a small terminal"
        assert got("repos/{id}/checks")["items"][-1]["name"] == "lint", "nothing was sent yet"
        await press(pilot, "S")
        await sees(pilot, "U undo it", "Nobody pushes, edits it directly or deletes it.")
        assert rules() == [("main", 1, True)]
        await press(pilot, "minus", "S")
        await sees(pilot, "0 (none)")
        assert rules() == [("main", 0, True)]
        await press(pilot, "U")
        await sees(pilot, "approvals            1")
        assert rules() == [("main", 1, True)]
        await press(pilot, "x", "y")
        await sees(pilot, "no rule yet: S makes it")
        assert rules() == []
        await press(pilot, "U")
        await sees(pilot, "approvals            1")
        assert rules() == [("main", 1, True)]


def required_checks() -> list[str]:
    return [each["name"] for each in got("repos/{id}/checks")["items"] if each["enabled"]]


async def test_the_rule_and_the_required_checks_are_one_draft(
    project: str, alice: Svc, open_app: Open
) -> None:
    """S sends both, U takes both back, and the list of the settings says that there is a draft."""
    assert alice("repo", "checks", "enable", "lint").code == 0
    assert alice("repo", "protect", "set", "main", "--required-approvals", "1").code == 0
    assert alice("repo", "protect", "set", "v*", "--require-checks").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Branch rules", "rule", "main")
        await press(pilot, "enter")
        await sees(pilot, "which (all rules)    lint", "that match now")
        await press(pilot, "plus", "c")
        await sees(pilot, "required checks of all rules, once S saves")
        await press(pilot, *"unit", "enter", "y")
        await sees(pilot, "which (all rules)    lint, unit  was lint", "also for v*.", "3 changes not saved")
        assert required_checks() == ["lint"]
        await press(pilot, "escape")
        await sees(
            pilot,
            "* main                 not saved: 2 approvals, checks lint, unit",
            "enter opens it, S there saves",
            "as saved: Nobody pushes",
        )
        await press(pilot, "enter")
        await sees(pilot, "approvals            2  was 1", "lint, unit  was lint")
        await press(pilot, "U")
        text = await sees(pilot, "approvals            1", "which (all rules)    lint")
        assert "was" not in text and "U " not in text.splitlines()[-1]
        await press(pilot, "plus", "c")
        await press(pilot, *"unit", "enter", "y")
        await press(pilot, "S")
        saved = "the rule for main is saved: 2 approvals, checks lint, unit"
        await sees(pilot, saved, "U undo it", "x remove", "esc back")
        assert required_checks() == ["lint", "unit"]
        assert got("repos/{id}/protections")["items"][0]["required_approvals"] == 2
        await press(pilot, "U")
        await sees(pilot, "approvals            1", "which (all rules)    lint", "required checks      - no")
        assert required_checks() == ["lint"]
        assert got("repos/{id}/protections")["items"][0]["required_approvals"] == 1
        await press(pilot, "escape")
        assert "draft" not in await sees(pilot, "main                 1 approval", "││ 1 approval")


async def test_a_removed_rule_is_brought_back_from_the_list(project: str, alice: Svc, open_app: Open) -> None:
    assert alice("repo", "protect", "set", "main", "--required-approvals", "2").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Branch rules", "rule", "main")
        await press(pilot, "enter", "x")
        await sees(pilot, "Remove the rule for main?")
        await press(pilot, "y")
        await sees(pilot, "no rule yet: S makes it", "U bring it back")
        await press(pilot, "escape")
        await sees(pilot, "main                 - removed, U brings it back", "it was: 2 approvals")
        assert got("repos/{id}/protections")["items"] == []
    async with open_app().run_test(size=(140, 40)) as pilot:  # later
        await opened(pilot)
        await to(pilot, "Branch rules", "rule", "main")
        await sees(pilot, "U bring it back")
        await press(pilot, "U")
        assert "- removed" not in await sees(pilot, "main                 2 approvals", "││ 2 approvals")
        await to(pilot, "Branch rules", "rule", "main")
        await press(pilot, "enter")
        assert "U " not in (await sees(pilot, "approvals            2")).splitlines()[-1]


async def test_a_weaker_rule_names_what_merges_at_once(proposal: str, alice: Svc, open_app: Open) -> None:
    """The question does, and the last line once it has merged."""
    assert alice("repo", "protect", "set", "main", "--required-approvals", "2").code == 0
    assert alice("pr", "merge", "1", "--auto", "--squash").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Branch rules", "rule", "main")
        await press(pilot, "enter")
        await sees(pilot, "approvals            2")
        await press(pilot, "minus", "S")
        assert "at once" not in await sees(pilot, "U undo it")
        await press(pilot, "minus", "S")
        await sees(pilot, "#1 waits with auto merge and merges into main at", "stays merged. Save it?")
        await press(pilot, "n")
        await sees(pilot, "1 change not saved")
        await press(pilot, "S", "y")
        await sees(pilot, "merged into main", "● #1 (")
    assert json.loads(alice("pr", "view", "1", "--json", "state").out)["state"] == "merged"


async def test_a_check_that_is_required_no_more_names_what_merges(
    proposal: str, alice: Svc, open_app: Open
) -> None:
    assert alice("repo", "checks", "enable", "lint").code == 0
    assert alice("repo", "protect", "set", "main", "--require-checks").code == 0
    assert alice("pr", "merge", "1", "--auto", "--squash").code == 0
    async with open_app().run_test(size=(140, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Checks", "check", "lint")
        await sees(pilot, "main                 check lint")
        await press(pilot, "enter")
        await sees(pilot, "#1 waits with auto merge", "Change the required checks?")
        await press(pilot, "y")
        await sees(pilot, "merged into main")


async def test_a_change_of_a_rule_that_was_refused_is_not_undone(
    project: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await opened(pilot)
        await to(pilot, "Branch rules", "protect", "")
        await press(pilot, "enter", *"main", "enter")
        await sees(pilot, "no rule yet: S makes it")
        assert alice("repo", "archive", "--yes").code == 0
        await press(pilot, "plus", "S")
        assert "undo it" not in await sees(pilot, "refused: ", "no rule yet: S makes it")
        await press(pilot, "U")
        await sees(pilot, "nothing was changed here")
    assert alice("repo", "unarchive", "--yes").code == 0


async def test_a_check_without_a_name_is_not_required(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Checks", "choose", "")
        await press(pilot, "c")
        await sees(pilot, "☐ another name …")
        await press(pilot, "space", "enter")
        await sees(pilot, "name of a check: such as ci/test")
        await press(pilot, "enter")
        await sees(pilot, "a check needs a name; nothing was changed")
        assert pilot.app.outbox.entries == []  # type: ignore[attr-defined]
    assert got("repos/{id}/checks")["items"] == []


@pytest.mark.parametrize(
    ("set_rule", "required", "means"),
    [
        (
            ProtectionSet(lock_writes=True),
            (),
            ["Nobody pushes, edits it directly, merges into it or deletes it."],
        ),
        (
            ProtectionSet(require_checks=True, require_resolution=True),
            ("a", "b", "c", "d"),
            [
                "Nobody pushes, edits it directly or deletes it.",
                "A merge needs the checks a, b, c and 1 more to pass and all threads resolved.",
            ],
        ),
        (
            ProtectionSet(require_checks=True),
            (),
            ["Nobody pushes, edits it directly or deletes it.", "A merge needs nothing more.", NO_CHECK],
        ),
    ],
)
def test_a_rule_in_sentences(set_rule: ProtectionSet, required: tuple[str, ...], means: list[str]) -> None:
    assert sentences(set_rule, required) == means


async def test_a_row_is_explained_below_a_narrow_list(project: str, open_app: Open) -> None:
    """Below the list stands what the row means, and the line of keys says what enter does to it."""
    async with open_app().run_test(size=(80, 24)) as pilot:
        await opened(pilot)
        await sees(pilot, "One line about the repository", "General · description", "enter change", "1 of 1")
        await to(pilot, "Listing", "private", "")
        await sees(pilot, "The catalog lists public repositories only", "enter go to its visibility")
        await press(pilot, "enter")
        await sees(pilot, "Lifecycle · visibility", "enter make it public")
        await to(pilot, "Access", "invite", "")
        await press(pilot, "a")
        await press(pilot, *"somebody", "enter")
        await sees(pilot, "role of somebody", "write   also push, seal, merge")


async def test_webhooks(project: str, alice: Svc, open_app: Open) -> None:
    address = "http://127.0.0.1:9/hook"
    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "Automation", "add", "")
        await press(pilot, "enter")
        await typed(pilot, address)
        await sees(pilot, "☑ push", "☐ release", "space on or off")
        text = await press(pilot, "down", "space", "enter")
        if "whsec_" not in text:
            pytest.skip("this server sends nothing to private addresses")
        await press(pilot, "escape")
        assert "push, release" in await press(pilot, "r")
        hook = got("repos/{id}/webhooks")["items"][0]["id"]
        await to(pilot, "Automation", "hook", hook)
        await press(pilot, "enter")
        assert "- switched off" in await press(pilot, *"switch", "enter")
        await sees(pilot, "Webhook: switched off")
        await press(pilot, "enter", *"events", "enter", "space", "down", "space", "enter")
        await sees(pilot, "a webhook is told at least one event")
        await press(pilot, "enter", *"events", "enter", "space", "down", "space", "down", "space", "enter")
        await sees(pilot, "Webhook: events proposal")
        found = got("repos/{id}/webhooks")["items"][0]
        assert (found["active"], found["events"]) == (False, ["proposal"])
        await press(pilot, "enter", *"delete", "enter")
        await typed(pilot, address)
    assert got("repos/{id}/webhooks")["items"] == []


async def test_lifecycle(project: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 60)) as pilot:
        await opened(pilot)
        await to(pilot, "Lifecycle", "visibility", "")
        await press(pilot, "enter")
        assert "that is not its name" in await typed(pilot, "y")
        assert got()["visibility"] == "private"
        await press(pilot, "enter")
        await typed(pilot, project)
        assert got()["visibility"] == "public"
        await press(pilot, "enter", "y")
        assert got()["visibility"] == "private"
        await to(pilot, "Lifecycle", "archive", "")
        await press(pilot, "enter")
        assert "yes: it takes no writes" in await press(pilot, "y")
        Path("new").write_text("1\n")
        assert alice("push", "-m", "New").code == 1
        await press(pilot, "enter")
        await press(pilot, "y")
        assert alice("push", "-m", "New").code == 0
        await to(pilot, "Lifecycle", "delete", "")
        await press(pilot, "enter")
        assert "nothing was deleted" in await typed(pilot, "project")
        await press(pilot, "enter")
        assert "Deleted" in await typed(pilot, project)
    assert alice("repo", "view", project).code == 1


async def test_who_is_not_the_owner_is_told_what_it_needs(
    proposal: str,
    other: Callable[..., None],
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("TEST_HANDLE", os.environ["TEST_HANDLE"][:30] + "-b")
    async with open_app().run_test(size=(99, 60)) as pilot:
        await settle(pilot)
        assert isinstance(pilot.app, SvcApp)
        owner, name = proposal.split("/")
        found = pilot.app.client.api.repo.find(owner, name)
        pilot.app.push_screen(RepoScreen(found, tab=8))
        text = await settle(pilot)
        assert "webhooks are shown to the owner" in text
        await to(pilot, "General", "field", "description")
        assert "this needs the role owner" in await press(pilot, "enter")


async def test_the_card_of_checks_has_columns_whatever_the_names_are_of(
    project: str, alice: Svc, open_app: Open
) -> None:
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    for name in ("lint", "試験"):
        assert alice("repo", "run", "create", name, "--seal", seal).code == 0
    async with open_app().run_test(size=(100, 40)) as pilot:
        await opened(pilot)
        await to(pilot, "Checks", "check", "lint")
        await press(pilot, "c")
        await sees(pilot, "☐ 試験", "☐ lint")
        rows = [row for row in shown(pilot.app).splitlines() if "☐" in row and "queued" in row]  # type: ignore[arg-type]
        assert len({cell_len(row[: row.index("◌")]) for row in rows}) == 1, rows
