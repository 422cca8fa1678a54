"""Palette, command line and forms, by keys alone, against a real relay."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from svc.cmd.frame.catalogue import NOT_INSIDE
from svc.cmd.frame.table import COMMANDS
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import proposal, seen
from tests.tui.settings.test_settings import said
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import issue
from tui import contents
from tui.app import SvcApp
from tui.machine import Place
from tui.screens.base import Base
from tui.screens.command import output
from tui.screens.command.palette import Palette
from tui.widgets.lines import Lines
from tui.widgets.sheet import Sheet

__all__ = ["issue", "project", "proposal"]
Open = Callable[..., SvcApp]


async def test_the_palette_lists_every_command(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "space")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        lines = [action.command for action in palette._table.values()]
        missing = [
            path for path in COMMANDS if not any(f"{line} ".startswith(f"svc {path} ") for line in lines)
        ]
        assert set(missing) == set(NOT_INSIDE)
        text = await press(pilot, *"webhook ping")
        assert "svc repo webhook ping" in text
        assert "svc repo webhook list" not in text


async def test_a_form_asks_for_what_is_missing(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "space")
        text = await press(pilot, *"label create", "enter")
        assert "svc label create" in text
        assert "▌NAME" in text
        assert issue in text.split("--repo")[1].split("\n")[0]
        text = await press(pilot, "enter", *"docs", "enter")
        assert "▌run  svc label create" in text
        assert "docs" in await seen(pilot, "svc label create")
        await press(pilot, "enter")
        await sees(pilot, "Created", "keys here", "Code")  # the repository's screen stays
    assert "docs" in alice("label", "list", "--json", "name").out


async def test_a_form_knows_the_number_of_the_issue(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        assert "✓ closed" in await press(pilot, "z")
        await press(pilot, "space")
        text = await press(pilot, *"closed issue again", "enter")
        assert "▌run  svc issue reopen" in text
        await press(pilot, "enter")
        await sees(pilot, "Reopened issue #1", "○ open", "c comment")
    assert json.loads(alice("issue", "view", "1", "--json", "state").out)["state"] == "open"


async def test_a_command_line_is_completed_and_filled_in(issue: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        text = await press(pilot, "colon", *"issue c")
        assert "issue close" in text
        assert "issue comment" in text
        text = await press(pilot, *"lo", "tab")
        assert "the number that is shown" in text
        await press(pilot, "ctrl+u", *"  svc  issue  close  ")
        await sees(pilot, " svc issue close", "the number that is shown")
        await press(pilot, "ctrl+u", *"issue close ")
        text = await press(pilot, "tab", *"--re")
        assert "--reason" in text
        await press(pilot, "escape", "colon", *"issue comment -b Typed", "enter")
        await sees(pilot, "Commented on #1", "○ open", "Typed")  # said where it was typed


async def test_tab_completes_what_all_have_in_common_before_it_takes_one(issue: str, open_app: Open) -> None:
    """A command that closes or removes something is not the first of equals."""
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"iss", "tab")
        text = await sees(pilot, ": svc issue ")
        assert ": svc issue c" not in text
        assert "▌issue close" not in text
        await press(pilot, *"c")
        await sees(pilot, "▌issue comment", ": svc issue c")
        await press(pilot, "tab")
        await sees(pilot, ": svc issue comment ")
        await press(pilot, "ctrl+u", *"iss", "down", "up", "tab")
        await sees(pilot, ": svc issue ")
        await press(pilot, "ctrl+u", *"issue c", "down", "tab")
        await sees(pilot, ": svc issue create ")


async def test_branches_of_the_repository_complete_also_after_the_dots(
    proposal: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that no command has listed on this machine."""
    monkeypatch.setattr("svc.flows.place.known_refs.recall", lambda *of: {})
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"log ma")
        await sees(pilot, "▌main ", "branch")
        await press(pilot, "tab", "backspace", *"..")
        await sees(pilot, "▌main..", ": svc log main..")
        await press(pilot, *"to")
        await sees(pilot, "▌main..topic ")
        await press(pilot, "ctrl+u", *"log main...to", "tab")
        await sees(pilot, ": svc log main...topic ")


async def test_a_form_asks_for_a_name_and_not_for_the_words_of_a_shell(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"repo rename", "enter")
        text = await sees(pilot, "▌NEW NAME", "* What it is called from now on")
        assert "WORDS" not in text and "-R" not in text
        await press(pilot, "enter", *"renamed", "enter")
        await sees(pilot, "▌run  svc repo rename", "renamed")
        await press(pilot, "escape", "colon", *"repo visibility", "enter")
        await sees(pilot, "▌VISIBILITY", "* Who may read it")
        await press(pilot, "enter")
        await sees(pilot, "public", "private")


async def test_up_brings_back_the_lines_that_were_run(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for line in ("issue label add 1", "pr view 7", "issue label add 1"):
            await press(pilot, "colon", *line, "enter")
            if line.startswith("pr"):
                await sees(pilot, "has no proposal #7")
            else:
                await press(pilot, "escape")
        await sees(pilot, "keys here")
        await press(pilot, "colon")
        await sees(pilot, "up brings the last command", "enter run")
        assert ": svc issue label add 1" in await press(pilot, "up")
        assert ": svc pr view 7" in await press(pilot, "up")
        assert ": svc pr view 7" in await press(pilot, "up")
        assert ": svc issue label add 1" in await press(pilot, "down")
        await press(pilot, "down", *"issue c")
        candidates = pilot.app.screen.query_one("#candidates", Lines)
        before = candidates.key
        assert ": svc issue c" in await press(pilot, "down")
        assert candidates.key != before
        await press(pilot, "up")
        assert candidates.key == before


async def test_a_line_that_is_no_command_is_corrected_where_it_was_typed(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "colon", *"isue list")
        await sees(pilot, "svc has no command isue; did you mean issue?")
        await press(pilot, "enter")
        assert ": svc isue list" in await sees(pilot, "svc has no command isue", "enter run")
        await press(pilot, "ctrl+u", *"q")
        await sees(pilot, "enter quits the app")
        await press(pilot, "enter")
        assert not pilot.app.is_running


async def test_wrong_words_leave_the_line_as_it_was_typed(issue: str, open_app: Open) -> None:
    """Also those that only the command itself finds wrong. The line says what is wrong, and what is right."""
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        for line, *says in (
            ("pr lst", ":pr has no command lst; did you mean list?"),
            ("issue list --stat open", ":issue list has no option --stat; did you mean --state?"),
            ("issue", ":issue goes on with create, list,"),
            ("llm serve", "svc llm serve keeps a terminal to itself: run it in a shell"),
            ("tui", "svc tui is the app that you are in"),
            ("repo edit", "nothing to change; give -d TEXT"),
            ("issue list -L many", "--limit wants a whole number"),
        ):
            await press(pilot, "colon", *line, "enter")
            await sees(pilot, f": svc {line} ", *says, "enter run")
            await press(pilot, "escape")
        await press(pilot, "colon", *"protect", "enter")
        await sees(pilot, ": svc repo protect list ", "that is no command yet; enter runs this one")


async def test_a_short_answer_is_said_in_place(issue: str, alice: Svc, open_app: Open) -> None:
    """So is an empty list. Only longer output has a screen."""
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        screen = pilot.app.screen
        for line, says in (
            ("label create chore", "Created label chore"),
            ("repo protect list", "no protection rules"),
            ("issue view 77", "has no issue #77; see :issue list"),
        ):
            await press(pilot, "colon", *line, "enter")
            await sees(pilot, says, "Retry stalls", "keys here")
            assert pilot.app.screen is screen
        await press(pilot, "colon", *"issue view 1", "enter")
        await sees(pilot, "svc issue view", "✓ done")


async def test_a_text_that_a_command_opens_an_editor_for_is_asked(
    issue: str, alice: Svc, open_app: Open
) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        text = await press(pilot, "colon", *"issue comment 1", "enter")
        assert "▌--body" in text
        await press(pilot, "enter", *"From the form", "enter", "enter")
        await sees(pilot, "Commented on #1", "Retry stalls")
    assert "From the form" in alice("issue", "view", "1", "--comments").out


async def test_a_form_lets_choose_what_the_command_can_act_on(issue: str, alice: Svc, open_app: Open) -> None:
    assert alice("issue", "create", "-t", "Solved", "-b", "").code == 0
    assert alice("issue", "close", "2").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"issue reopen", "enter")
        await sees(pilot, "▌NUMBER")
        await settle(pilot)
        await press(pilot, "enter")
        assert "Retry stalls" not in await sees(pilot, "2  Solved")
        await press(pilot, "enter")
        await sees(pilot, "▌run  svc issue reopen", "2")
        await press(pilot, "enter")
        await sees(pilot, "Reopened issue #2")


async def test_the_palette_runs_a_line_that_it_does_not_list(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "space", *"xyzzy")
        await sees(pilot, "no action and no command of svc has all these words")
        await press(pilot, "enter")
        await sees(pilot, "nothing was run", "/ xyzzy")
        await press(pilot, "ctrl+u", *f"issue list -R {issue} -L 1")
        await sees(pilot, f"enter runs: svc issue list -R {issue} -L 1")
        await press(pilot, "enter")
        await sees(pilot, "svc issue list --limit=1", "✓ done", "Retry stalls")


async def test_the_heading_names_the_command_and_what_it_is_about(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "colon")
        assert issue not in str(pilot.app.screen.query_one("#card").border_title)
        await press(pilot, *"issue list")
        assert f"svc issue list  {issue}" in str(pilot.app.screen.query_one("#card").border_title)
        await press(pilot, "ctrl+u", *"repo list")
        title = str(pilot.app.screen.query_one("#card").border_title)
        assert "svc repo list" in title and issue not in title
        await press(pilot, "escape", "space")
        await sees(pilot, "enter run")


async def test_a_command_line_asks_for_what_it_lacks(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "colon", *"issue label add 1", "enter")
        assert "▌LABELS" in text
        await press(pilot, "enter", *"bug", "enter")
        await press(pilot, "enter")
        await sees(pilot, "Labelled issue #1", "keys here")


async def test_a_new_one_without_a_title_is_written_in_its_form(
    issue: str, alice: Svc, open_app: Open
) -> None:
    assert alice("label", "create", "docs").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await press(pilot, "colon", *"issue create -l docs -b Text", "enter")
        await sees(pilot, "title of the issue", "● docs", "1 line")
        await press(pilot, *"From the line", "enter", "ctrl+s")
        await sees(pilot, "#2 ", "From the line")
        await press(pilot, "colon", *"repo release create", "enter")
        await sees(pilot, "version of the release")
        await press(pilot, "escape", "escape", "colon", *"pr create -d", "enter")
        await sees(pilot, "there is no branch besides main")
        assert alice("repo", "branch", "topic").code == 0
        assert alice("switch", "topic").code == 0
        Path("src/main.py").write_text("def main():\n    return 3\n")
        assert alice("push", "-m", "Third\n\nIt is odd.").code == 0
        await press(pilot, "r", "colon", *"pr create -d", "enter")
        await sees(pilot, "branch to propose", "topic")
        await press(pilot, "enter")
        await sees(pilot, "title     Third", "draft     ✓ yes", "It is odd.")
    found = json.loads(alice("issue", "view", "2", "--json", "title,labels,body").out)
    assert found["title"] == "From the line" and found["body"] == "Text"
    assert found["labels"] == ["docs"]


async def test_notes_of_a_release_have_the_seals_since_the_last_one(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """Also where the app remembers the repository from before that release."""
    repo_id = alice("repo", "view", "--jq", ".id").out.strip()
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "5", "a", *"v1", "enter", "escape", "f")
        await sees(pilot, "• Second", "• First")
        await press(pilot, "D", "y")
        assert alice("repo", "release", "create", "v0").code == 0
        await press(pilot, "r")
        await sees(pilot, "v0", "Releases 1")
        await press(pilot, "a", *"v1", "enter", "escape")
        await sees(pilot, "version   v1")
        assert isinstance(pilot.app, SvcApp)
        client = pilot.app.client
        client.store.put(client.space, contents.releases(repo_id).key, [])
        await press(pilot, "f")
        await sees(pilot, "nothing was sealed on main since the last release")
        assert "• Second" not in shown(pilot.app)


async def test_the_palette_is_in_groups(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        text = await press(pilot, "question_mark")
        rows = [row.strip(" │▌") for row in text.splitlines()]
        groups = [row for row in rows if row in ("This row", "This screen", "Everywhere")]
        assert groups[0] == "This row"
        assert any(row.startswith("open ") and row.endswith(" enter") for row in rows)


async def test_what_a_command_refuses_is_said(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "colon", *"issue view 77", "enter")
        await sees(pilot, "has no issue #77", "keys here")
        assert "cannot be read" in await press(pilot, "colon", *"issue view 'open", "enter")
        await press(pilot, "colon", *"nonsense", "enter")
        assert "svc has no command nonsense" in await seen(pilot, "svc has no command nonsense")


async def test_a_command_that_goes_on_is_stopped(issue: str, alice: Svc, open_app: Open) -> None:
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    run = json.loads(alice("repo", "run", "create", "lint", "--seal", seal, "--json", "id").out)["id"]
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await pilot.press("colon", *f"repo run watch {run}", "enter")
        await sees(pilot, "x stop it")  # it has a screen once it takes long
        await pilot.press("x")
        assert "it was stopped" in await seen(pilot, "it was stopped")


@pytest.mark.parametrize(
    ("role", "may", "may_not"),
    [
        ("read", "issue.create", "issue.label"),
        ("triage", "issue.label", "proposal.merge_prepare"),
        ("write", "proposal.merge_prepare", "webhook.create"),
    ],
)
async def test_what_a_role_may_not_do_says_why(
    issue: str,
    alice: Svc,
    node: str,
    open_app: Open,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    role: str,
    may: str,
    may_not: str,
) -> None:
    handle, mine = f"{os.environ['TEST_HANDLE']}"[:24] + f"-{role}", os.environ["SVC_HOME"]
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("login", "--device-key", "--handle", handle).code == 0
    monkeypatch.setenv("SVC_HOME", mine)
    assert alice("repo", "collaborator", "add", handle, "--role", role).code == 0
    monkeypatch.setenv("SVC_HOME", str(tmp_path / "other"))
    assert alice("repo", "invite", "accept", issue).code == 0
    monkeypatch.setenv("TEST_HANDLE", handle)
    async with open_app().run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        await press(pilot, "enter")
        await press(pilot, "space")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        why = {action.right: palette._refused(action) for action in palette._table.values()}
        assert why[may] == ""
        assert f"you have {role}" in why[may_not]
        text = await press(pilot, *"webhook create")
        assert f"this needs the role owner; you have {role}" in text
        assert "this needs the role owner" in await press(pilot, "enter")
        if role == "read":
            assert "this needs the role triage" in await press(pilot, "l")
    refused = alice("repo", "webhook", "create", "https://example.org/", "-R", issue)
    assert refused.code != 0, "the relay refuses it too"


async def test_a_variable_does_not_name_another_repository_than_the_screen(
    issue: str, alice: Svc, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alice("repo", "create", "other").code == 0
    other = f"{os.environ['TEST_HANDLE']}/other"
    monkeypatch.setenv("SVC_REPO", other)
    repo = json.loads(alice("repo", "view", issue, "--json", "id").out)["id"]
    place = Place(Path.cwd(), repo, issue, "main")
    async with open_app(place=place).run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        assert f" {issue}  main" in await press(pilot, "enter")  # the repository of the folder stands first
        await press(pilot, "colon", *"label create shown-here", "enter")
        assert "shown-here" in await seen(pilot, "Created")
    monkeypatch.delenv("SVC_REPO")
    assert "shown-here" in alice("label", "list", "-R", issue, "--json", "name").out
    assert "shown-here" not in alice("label", "list", "-R", other, "--json", "name").out


async def test_esc_in_a_card_lists_all_rows_again_before_it_leaves(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 40)) as pilot:
        await settle(pilot)
        assert "inbox" in await press(pilot, "?")
        card = pilot.app.screen
        rows = len(card.query_one(Lines).rows)
        await press(pilot, "slash", *"inbox", "enter")
        assert 0 < len(card.query_one(Lines).rows) < rows
        await press(pilot, "escape")
        assert pilot.app.screen is card and len(card.query_one(Lines).rows) == rows
        await press(pilot, "escape")
        assert pilot.app.screen is not card


async def test_a_command_that_waits_shows_what_it_has_printed(project: str, open_app: Open) -> None:
    """`login` prints an address and a code, and waits until somebody opens it."""
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press(":", *"login", "enter")
        text = await sees(pilot, "/cli/authorize")
        assert "running" in text
        await pilot.press("x")
        await sees(pilot, "it was stopped")


async def test_a_code_stands_alone_and_an_error_has_its_sign(project: str, open_app: Open) -> None:
    """The output is read, not chosen from: no row is marked before a search found one. A code is on a line of
    its own, the head of a table is bold, and an error is in a red frame."""
    app = open_app()
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, ":", *"auth device add", "enter")
        text = await sees(pilot, "svc auth device add · done in", "works once, for ten minutes")
        code = next(row.strip(" │") for row in text.splitlines() if re.fullmatch(r"[│ ]+[A-Z-]+[│ ]+", row))
        assert f"--pair {code}" in text and "/ search" in text
        sheet = app.screen.query_one(Sheet)
        assert not any(sheet.highlights(row) for row in range(len(sheet.rows)))
        await press(pilot, "/", *"once", "enter")
        assert [at for at in range(len(sheet.rows)) if sheet.highlights(at)] == [3]
        await press(pilot, "escape", ":", *"auth device list", "enter")
        await sees(pilot, "NAME", "· done in")
        rows = app.screen.query_one(Sheet).rows
        assert any(row.left[0][1] == "title" and "NAME" in row.left[0][0] for row in rows)
        await press(pilot, "escape")
        app.run_words(["auth", "pair"])
        await sees(pilot, "✗ there is no command", "✗ exit 2")


async def test_a_command_of_a_form_that_takes_long_gives_the_screen_back(
    issue: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it takes long its screen shows that it runs, and can be stopped; a result of one line is said on
    the screen that the form was opened from."""
    monkeypatch.setattr(output, "LATE", 0.01)
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await press(pilot, "space")
        await press(pilot, *"label create", "enter")
        await press(pilot, "enter", *"docs", "enter")
        await pilot.press("enter")
        await sees(pilot, "◐ running", "x stop it")
        await sees(pilot, "Created label docs", "c comment", "○ open")


async def test_a_long_result_is_named_where_another_screen_is_in_front(project: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        home, commands = app.screen, app.commands
        assert isinstance(home, Base) and commands is not None
        await press(pilot, "question_mark")
        command = output.Command(["repo", "--help"], None, commands)
        output.run_here(app, home, command, "reading")
        await sees(pilot, "repo --help: done; ", "Keys")


async def test_the_position_counts_the_candidates_that_are_listed(project: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.commands is not None
        await press(pilot, "colon")
        await sees(pilot, f"─ 1 of {len(app.commands.summaries)} ─")
        await press(pilot, *"repo ref")
        lines = app.screen.query_one("#candidates", Lines)
        text = await sees(pilot, ": svc repo ref")
        assert len(lines.rows) < lines.size.height
        assert f"of {len(app.commands.summaries)}" not in text


async def test_a_long_output_is_shown_from_its_beginning(project: str, open_app: Open) -> None:
    """It is what a command prints at once. Of one that prints line after line the last is shown."""
    app, text = open_app(), "".join(f"line {number}\n" for number in range(1, 81))
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.commands is not None
        command = output.Command(["repo", "list"], None, app.commands)
        command.begun = True
        await app.push_screen(output.Output(command))
        command._tell(text, output.RUNNING)
        await sees(pilot, "· running", "─ 1–20 of 80")
        command._tell(text, output.SUCCEEDED)
        assert "│ line 1 " in await sees(pilot, "· done in", "─ 1–20 of 80")
        command.state = output.RUNNING
        command.printed_at = command.began_at - 2 * output.OVER_TIME
        command._tell(text + "last", output.RUNNING)
        await sees(pilot, "│ last ", "─ 62–81 of 81")


async def test_a_command_that_needs_a_confirmation_asks_in_a_card(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """The card has the question of the command. What takes a whole repository away is confirmed by its
    name."""
    assert alice("label", "create", "chore").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        screen = pilot.app.screen
        await pilot.press("colon", *"label delete chore", "enter")
        await sees(pilot, "Deleting label chore takes it off", "y yes")
        assert pilot.app.screen is screen
        assert "nothing was done" in await press(pilot, "n")
        assert "chore" in said("label", "list", "-R", issue)
        told: list[bool] = []
        app = pilot.app
        assert isinstance(app, SvcApp)
        app.run_here(["label", "delete", "chore", "-R", issue], "deleting", told.append)
        await sees(pilot, "Deleting label chore")
        await settle(pilot)
        assert "nothing was done" in await press(pilot, "n")
        assert told == [False], "who waits for the command is told"
        await pilot.press("colon", *"label delete chore", "enter")
        await sees(pilot, "Deleting label chore")
        await settle(pilot)
        await pilot.press("y")
        await sees(pilot, "Deleted label chore")
        await press(pilot, "escape")
        await pilot.press("colon", *f"repo delete {issue}", "enter")
        await sees(pilot, "─ svc repo delete ─", f"{issue}. To do")
        assert "nothing was done" in await press(pilot, "y", "enter")
        await pilot.press("colon", *f"repo delete {issue}", "enter")
        await sees(pilot, "─ svc repo delete ─", f"{issue}. To do")
        await settle(pilot)
        assert "nothing was done" in await press(pilot, *issue.upper(), "enter"), "the name is exact"
        await pilot.press("colon", *f"repo delete {issue}", "enter")
        await sees(pilot, "─ svc repo delete ─", f"{issue}. To do")
        await settle(pilot)
        await pilot.press(*issue, "enter")
        await sees(pilot, f"Deleted {issue}")
    assert alice("repo", "view", issue).code == 1


async def test_the_command_line_offers_what_the_command_can_act_on(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """Only open issues to close, closed ones to reopen, and nothing after the one number that is taken."""
    assert alice("issue", "create", "-t", "Solved", "-b", "").code == 0
    assert alice("issue", "close", "2").code == 0
    seal = json.loads(alice("log", "main", "--json", "id").out)[0]["id"]
    assert alice("repo", "run", "create", "lint", "--seal", seal).code == 0
    assert alice("label", "create", "chore").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")

        async def offers(line: str, *words: str) -> str:
            await press(pilot, "colon", *line)
            text = await sees(pilot, *words)
            await press(pilot, "escape")
            return text.split("╭─ svc")[1]

        assert "Solved" not in await offers("issue close ", "Retry stalls")
        assert "Retry stalls" not in await offers("issue reopen ", "Solved")
        assert "Retry stalls" in await offers("issue view ", "Solved  (closed)")
        assert "Retry stalls" not in await offers("issue close 1 ", "--reason")
        assert "Say why" not in await offers("issue close --comment x 1 ", "--reason")
        assert "Retry stalls" not in await offers("pr merge ", "--squash")
        assert "chore" in await offers("issue label add 1 ", "chore")
        await offers("repo run cancel ", "lint at ", "queued")
        assert "lint at" not in await offers("repo run rerun ", "nothing completes this")


async def test_the_palette_finds_words_in_any_order(issue: str, open_app: Open) -> None:
    """Words are sought in actions and commands, and what they are called elsewhere. What was typed stays if
    nothing has it."""
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "space")
        assert "svc repo release create" in await press(pilot, *"new rel")
        await press(pilot, "ctrl+u")
        assert "svc repo release create" in await press(pilot, *"release new")
        await press(pilot, "ctrl+u")
        text = await press(pilot, *"zzzz", "enter")
        assert "/ zzzz" in text and "nothing was run" in text


def test_printed_changes_have_the_colours_of_changes() -> None:
    lines = ["diff --git a/x b/x", "--- a/x", "+++ b/x", "@@ -1 +1 @@", "-old", "+new", " same"]
    lines += ["--- of SQL", "+++ i", "--- /dev/null", '+++ "b/\\303"']
    roles = [row[0][1] for row in output.rows_of(lines, 80, False, True)]
    assert roles == [
        "title",
        "title",
        "title",
        "accent",
        "delete",
        "add",
        "text",
        "delete",
        "add",
        "title",
        "title",
    ]
    assert [row[0][1] for row in output.rows_of(["-L takes a number"], 80, False)] == ["text"]


async def test_of_an_output_only_what_is_new_is_read(
    project: str, open_app: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, wrapped = open_app(), list[str]()
    rows_of = output.rows_of

    def counted(lines: Sequence[str], width: int, failed: bool, changes: bool) -> list[Any]:
        wrapped.extend(lines)
        return rows_of(lines, width, failed, changes)

    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert app.commands is not None
        command = output.Command(["repo", "list"], None, app.commands)
        command.begun = True
        screen = output.Output(command)
        await app.push_screen(screen)
        monkeypatch.setattr(output, "rows_of", counted)
        whole = "".join(f"\x1b[1mline\x1b[0m {number}\n" for number in range(1, 101)) + "no end"
        for end in range(1, len(whole) + 1, 9):
            command._tell(whole[:end], output.RUNNING)
        command._tell(whole, output.RUNNING)
        assert len(wrapped) <= len(whole) // 9 + 102
        sheet = screen.query_one("#output", Lines)

        def texts() -> list[str]:
            return ["".join(text for text, _ in sheet.rows[at].left) for at in range(len(sheet.rows))]

        lines = [f"line {number}" for number in range(1, 101)]
        assert texts() == [*lines, "no end"]
        command._tell(f"{whole} yet\nsvc: it failed\n", ("exit 1", "bad"))
        assert texts() == [*lines, "no end yet", "✗ it failed"]
        command._tell("another", output.SUCCEEDED)
        assert texts() == ["another"]


async def test_a_line_that_is_no_command_is_explained_once(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "colon", *"whoami", "enter")
        text = await sees(pilot, ":auth status says who is signed in")
        assert text.count("says who is signed in") == 1
        await press(pilot, "ctrl+u", *"zzzz", "enter")
        text = await sees(pilot, "svc has no command zzzz", "nothing ran; correct the line")
        assert text.count("no command zzzz") == 1
        await press(pilot, "ctrl+u", *"status --zzzz", "enter")
        await sees(pilot, ":status has no option --zzzz")
