"""The line of keys names only what a key does there, and esc never ends the app."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tests.tui.test_issues import issue
from tui.app import SvcApp
from tui.screens.base import Base

__all__ = ["issue", "project"]
Open = Callable[..., SvcApp]


def footer(text: str) -> str:
    return text.rstrip().split("\n")[-1]


async def test_esc_on_home_says_how_to_quit_and_q_quits(project: str, open_app: Open) -> None:
    app = open_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "q quit" in footer(await press(pilot, "enter", "escape"))
        text = await press(pilot, "escape", "escape", "escape")
        assert app.is_running
        assert "q quits" in footer(text)
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running


async def test_keys_that_would_be_typed_are_not_offered(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for opens in ("t", "w", "slash"):
            text = await press(pilot, *(["enter", opens] if opens == "t" else [opens]))
            assert "esc leave" in text and ("enter choose" in text or opens == "slash")
            assert "/ filter" not in text and "? keys here" not in text
            text = await press(pilot, "escape")
            assert "? keys here" in footer(text)


async def test_enter_is_offered_where_it_opens_something(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 24)) as pilot:
        await settle(pilot)
        assert "enter open" in footer(await press(pilot, "enter"))
        assert "enter open" not in footer(await press(pilot, "1"))
        assert "enter open" in footer(await press(pilot, "3"))
        text = await press(pilot, "enter")
        assert "c comment" in footer(text)
        assert "enter open" not in footer(text)


async def test_empty_lists_name_the_key(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        assert "no releases; a makes one" in await press(pilot, "enter", "5")
        assert "none; enter on a branch begins one" in await press(pilot, "6")


async def test_keys_are_named_for_the_row_and_left_out_where_they_do_nothing(
    issue: str, alice: Svc, open_app: Open
) -> None:
    """`z` closes or reopens, by the state of the issue; no branch is chosen where none is shown; rows that
    open nothing have no `enter`; a filter that leaves no row leaves no key of a row."""
    async with open_app().run_test(size=(140, 40)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        await sees(pilot, "z close  T edit the text  l labels  u assign me")
        await press(pilot, "u", "z")
        await sees(pilot, "z reopen  T edit the text  l labels  u unassign me")
        await press(pilot, "escape")
        await sees(pilot, "no open issues")
        text = footer(await settle(pilot))
        assert "a new" in text
        assert not any(words in text for words in ("enter open", "c comment", "z close", "b branch"))
        assert "b branch, tag or seal" in footer(await press(pilot, "1"))
        assert "enter open" not in footer(await press(pilot, "6"))
        text = footer(await press(pilot, "escape", "s"))
        assert "drop" not in text and "pause" not in text
    assert alice("issue", "reopen", "1").code == 0


async def test_a_footer_leaves_two_columns_at_its_right(issue: str, open_app: Open) -> None:
    for width in (80, 90, 100):
        async with open_app().run_test(size=(width, 24)) as pilot:
            await settle(pilot)
            for keys in ("enter", "2", "3", "enter"):
                assert len(footer(await press(pilot, keys)).rstrip()) <= width - 2


async def test_a_message_leaves_the_keys_where_they_are_seen(project: str, open_app: Open) -> None:
    """A short message stands before the keys, a long one above them; the list then has fewer lines."""
    long = "the server did not answer: it may be stopped, or the network is down; r asks it again " * 2
    for width in (80, 100, 200):
        app = open_app()
        async with app.run_test(size=(width, 24)) as pilot:
            await settle(pilot)
            await press(pilot, "enter")
            screen = app.screen
            assert isinstance(screen, Base)
            screen.say("saved")
            text = await settle(pilot)
            assert footer(text).startswith(" saved   enter open") and footer(text).endswith("? keys here")
            screen.say(long, "warn")
            text = await settle(pilot)
            assert footer(text).startswith(" enter open") and footer(text).endswith("? keys here")
            rows = text.rstrip().splitlines()
            assert any(row.startswith(" the server did not answer") for row in rows[-4:-1])
            assert "r asks it again" in rows[-2]
            text = await press(pilot, "j")
            assert "asks it again" not in text and len(text.rstrip().splitlines()) == 24


async def test_keys_stay_in_the_line_while_the_server_is_away(project: str, open_app: Open) -> None:
    app = open_app("http://127.0.0.1:9")
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        text = await press(pilot, "r")
        await sees(pilot, "○ offline")
        assert footer(text).endswith("? keys here") and "a account" in footer(text)


async def test_code_names_the_keys_of_the_pane_with_the_focus(project: str, open_app: Open) -> None:
    """Nothing is opened in a text, and blame, replay and live editing need a file."""
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        text = footer(await press(pilot, "enter", "2", "g"))
        assert "enter open" in text and "B blame" not in text and "p replay" not in text
        await press(pilot, "j")
        text = footer(await sees(pilot, "Read me.", "B blame"))
        assert "enter open" in text and "/ filter" in text
        text = footer(await press(pilot, "enter"))
        assert "enter open" not in text and "B blame" in text and "v source" in text
        await press(pilot, "h")
        await sees(pilot, "history of", "seal ")
        assert "enter open" in footer(await settle(pilot))
        text = footer(await press(pilot, "tab"))
        assert "J next hunk" in text and "v side by side" in text
        assert "/project  seal " in await press(pilot, "enter")


async def test_code_names_no_keys_of_texts_for_a_picture_or_a_binary(
    project: str, alice: Svc, open_app: Open
) -> None:
    Path("red.png").write_bytes(b"\x89PNG\r\n\x1a\n\x00\x00")
    Path("raw.bin").write_bytes(bytes(range(256)))
    assert alice("push", "-m", "Third").code == 0
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2")
        await sees(pilot, "README.md")
        for name, shown in (("red.png", "10 bytes"), ("raw.bin", "256 B · not text")):
            await press(pilot, "t", *name.partition(".")[0], "enter")
            await sees(pilot, f"{name} · ", shown)
            for keys in ((), ("tab",)):
                text = footer(await press(pilot, *keys))
                assert not [word for word in ("B blame", "p replay", "e edit") if word in text], text
                assert "h history" in text
        await press(pilot, "t", *"main", "enter")
        text = footer(await sees(pilot, "return 2", "2 lines"))
        assert "B blame" in text and "p replay" in text


async def test_a_replay_that_is_started_in_the_tree_names_its_keys(project: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "2", "t", *"readme", "enter")
        await sees(pilot, "Read me.")
        text = footer(await press(pilot, "tab", "p"))
        assert "p p" in text and "step back" in text, text  # pause, or play again
        await sees(pilot, "╭─ replay ─", "step 1 of 1", "❚❚", "p play again")
        text = footer(await press(pilot, "g"))
        assert "p play again" in text and "step back" in text and "B blame" not in text, text


async def test_enter_in_a_preview_opens_the_row(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(140, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "8")
        await press(pilot, "j", "tab")
        text = await settle(pilot)
        label = next((part for part in footer(text).split("  ") if part.strip().startswith("enter ")), "")
        before = pilot.app.screen
        await press(pilot, "enter")
        asks = "esc leave" in footer(await settle(pilot)) or pilot.app.screen is not before
        assert asks is bool(label)


@pytest.mark.parametrize("width", [80, 140])
async def test_each_screen_names_its_ways_on(issue: str, alice: Svc, open_app: Open, width: int) -> None:
    """Of the row and the pane that has the focus; `?` always."""
    beside = ["tab preview"] if width >= 100 else []

    def names(text: str, *keys: str) -> None:
        named = footer(text)
        assert all(words in named for words in (*keys, "? keys here")), named

    async with open_app().run_test(size=(width, 40)) as pilot:
        names(await settle(pilot), "enter open", "i inbox", "w repository", "a account", *beside)
        names(await press(pilot, "enter", "1"), "o newest seal", "f facts", "t find file", "F search files")
        names(await press(pilot, "6"), "a report a fault", "e rules in Settings", *beside)
        names(await press(pilot, "G"), "enter begin a rule", "a report a fault", *beside)
        await press(pilot, "enter")  # the branch has no rule
        await sees(pilot, "no rule yet: S makes it")
        names(await press(pilot, "escape"), "enter begin a rule", *beside)
        names(await press(pilot, "8"), "enter change", "} next panel", *beside)
        names(await press(pilot, "}"), "enter ", "} next panel", "{ previous panel")
        names(await press(pilot, "7"), "enter open the history", "b branch", *beside)
        if beside:
            names(await press(pilot, "tab"), "tab next link or list")
            await press(pilot, "tab")
        names(await press(pilot, "enter"), "enter open")
        await sees(pilot, "First", "Second")


async def test_n_without_a_search_says_so(issue: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3", "enter")
        assert "nothing is looked for yet; /" in await press(pilot, "n")
        await press(pilot, "slash", *"zzz", "enter")
        assert "nothing matches; /" in await press(pilot, "n")
