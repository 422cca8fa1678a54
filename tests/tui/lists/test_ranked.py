"""A list in which what matches the typed words best comes first."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.tui.test_app import press, project, settle
from tests.tui.test_issues import issue
from tui.app import SvcApp
from tui.screens.choose import Choose
from tui.screens.command.palette import Palette
from tui.widgets.lines import Item, Lines
from tui.widgets.ranked import NAMED, Ranked

__all__ = ["issue", "project"]
NAMES = (
    "unread",
    "thread view",
    "read-only",
    "already read",
    f"open{NAMED}read",
    f"all{NAMED}spread",
    "read",
)


def found(typed: str, *used: str) -> list[str]:
    lines = Ranked()
    lines.used = used
    lines._filter = typed
    lines._all = [Item(name, ((name, "text"),), text=name) for name in NAMES]
    left = lines._filter_rows()
    return [str(left[at].key).partition(NAMED)[0] for at in range(len(left))]


@pytest.mark.parametrize(
    ("typed", "used", "expected"),
    [
        ("read", (), ["read", "read-only", "already read", "open", "unread", "thread view", "all"]),
        (
            "read",
            ("already read",),
            ["read", "already read", "read-only", "open", "unread", "thread view", "all"],
        ),
        ("read", ("unread",), ["read", "read-only", "already read", "open", "unread", "thread view", "all"]),
        ("re vi", (), ["thread view"]),
        ("rea", (), ["read-only", "read", "already read", "open", "unread", "thread view", "all"]),
        ("READ AL", (), ["already read"]),
    ],
)
def test_whole_words_and_beginnings_come_first(
    typed: str, used: tuple[str, ...], expected: list[str]
) -> None:
    assert found(typed, *used)[: len(expected)] == expected


async def test_the_palette_has_the_nearest_first_and_what_was_used(
    issue: str, open_app: Callable[..., SvcApp]
) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "space")

        def rows() -> list[str]:
            assert isinstance(pilot.app.screen, Palette)
            lines = pilot.app.screen.query_one("#actions", Lines)
            parts = (lines.rows[at].left for at in range(len(lines.rows)))
            return ["".join(text for text, _ in left) for left in parts]

        await press(pilot, *"star")
        assert {name.split("  ")[0] for name in rows()[:2]} == {
            "Give a repository a star",
            "Remove your star",
        }
        await press(pilot, "ctrl+u", *"tab")
        first = rows()[2]
        await press(pilot, "down", "down", "enter")
        await press(pilot, "space", *"tab")
        assert rows()[0] == first


async def test_a_chooser_begins_at_the_best_match(open_app: Callable[..., SvcApp]) -> None:
    chosen: list[str] = []
    async with open_app().run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        items = [Item(name, ((name, "text"),), text=name) for name in ("domain", "main-old", "main")]
        pilot.app.push_screen(Choose("branch", items, chosen.append, "domain"))
        await pilot.pause()
        await pilot.press(*"main", "enter")
        await pilot.pause()
        assert chosen == ["main"]


async def test_the_palette_puts_first_what_is_near(issue: str, open_app: Callable[..., SvcApp]) -> None:
    """Actions of the screen, then those everywhere, then commands about what is shown."""
    async with open_app().run_test(size=(120, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "space")

        async def first(typed: str) -> str:
            await press(pilot, "ctrl+u", *typed)
            return str(pilot.app.screen.query_one("#actions", Lines).key)

        assert await first("chec") == "tab_4"
        lines = pilot.app.screen.query_one("#actions", Lines)
        keys = [str(lines.rows[at].key) for at in range(len(lines.rows))]
        assert keys.index("repo_checks_list") < keys.index("command app check")
        assert keys.index("pr_checks") < keys.index("command llm doctor")
        assert await first("rename") == "command repo rename"
        assert await first("offline") == "sync"
        assert await first("queue") == "sync"
        assert await first("protect") == "tab_8"
        await first("compare")
        assert "command diff" in {lines.rows[at].key for at in range(len(lines.rows))}
        assert await first("label") not in ("issue_label_remove", "pr_label_remove")
        keys = [str(lines.rows[at].key) for at in range(len(lines.rows))]
        assert keys.index("command issue label add") < keys.index("issue_label_remove")
