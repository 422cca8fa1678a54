"""Rows of the output of a command that name something: the cursor is on them, and enter opens it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.screens.command.named import RowName, names_in

__all__ = ["project", "proposal"]
Open = Callable[..., SvcApp]


@pytest.mark.parametrize(
    ("path", "lines", "expected"),
    [
        (
            "pr list",
            ["NUMBER  TITLE", "7       open 3", "8       x"],
            [None, ("proposal", "7"), ("proposal", "8")],
        ),
        ("pr list", ["7       without a head"], [None]),
        (
            "log",
            ["ID            MESSAGE", "e39796f2d6d5  Say", "e3979…        Cut"],
            [None, ("seal", "e39796f2d6d5"), None],
        ),
        ("repo list", ["FULL NAME  KIND", "a/b        app", "a          no"], [None, ("repo", "a/b"), None]),
        (
            "inbox",
            ["ITEM   TITLE", "a/b#9  x", "a/b    y", "team   z"],
            [None, ("item", "a/b#9"), ("item", "a/b"), None],
        ),
        ("label list", ["NAME  COLOR", "bug   d73a4a"], [None, None]),
    ],
)
def test_rows_name_what_the_first_column_says(
    path: str, lines: list[str], expected: list[tuple[str, str] | None]
) -> None:
    assert names_in(path, lines) == [None if it is None else RowName(*it) for it in expected]


async def test_enter_opens_what_a_row_names(proposal: str, alice: Svc, open_app: Open) -> None:
    for title in ("First of them", "Second of them"):
        assert alice("issue", "create", "-t", title, "-b", "Text").code == 0
    assert alice("repo", "release", "create", "v1", "--notes", "All of it").code == 0
    seal = alice("log", "main", "--jq", ".[0].id").out.strip()
    assert alice("repo", "run", "create", "lint", "--seal", seal).code == 0
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "colon", *"issue list", "enter")
        await sees(pilot, "svc issue list", "▌", "enter open")
        await press(pilot, "down", "enter")
        await sees(pilot, "First of them", "c comment")
        await press(pilot, "escape")
        await sees(pilot, "svc issue list")  # back to the output
        for line, words in (
            ("pr list", "M merge"),
            ("repo run list", "Checks and runs"),
            ("repo release list", "All of it"),
            ("log", "✓ signed"),
            ("repo branch", "1 Over"),
            ("repo list", "1 Over"),
        ):
            await press(pilot, "colon", *line, "enter")
            await sees(pilot, f"svc {line}", " · done", "enter open")
            await press(pilot, "enter")
            await sees(pilot, words)
        await press(pilot, "colon", *"label list", "enter")
        await sees(pilot, "esc back")


async def test_what_is_gone_is_said(proposal: str, alice: Svc, open_app: Open) -> None:
    for version in ("v1", "v2"):
        assert alice("repo", "release", "create", version).code == 0
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "colon", *"repo release list", "enter")
        await sees(pilot, "svc repo release list", " · done")
        assert alice("repo", "release", "delete", "v2", "-y").code == 0
        await press(pilot, "enter")
        await sees(pilot, "release v2 is not there any more")
