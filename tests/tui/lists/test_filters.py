"""The words of the filter in Issues and Proposals: parsed, completed, and asked of a real relay by keys."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from localstore.core.errors import UsageError
from localstore.core.model.issue import IssueQuery
from localstore.core.model.proposal import ProposalQuery
from tests.svc.conftest import Svc
from tests.tui.conftest import shown
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, sees, settle, soon
from tests.tui.test_plain import typed
from tui.app import SvcApp
from tui.filters import complete, parse

__all__ = ["project", "proposal", "typed"]
Open = Callable[..., SvcApp]


def test_words_make_the_query_and_the_rest_is_free() -> None:
    found = parse("issues", 'stalls state:closed label:"good first" author:@ana assignee:@me at night')
    assert found.query == IssueQuery(state="closed", label="good first", author="ana", assignee="@me")
    assert found.free == "stalls at night"
    assert parse("issues", found.typed) == found
    assert parse("proposals", "draft:yes base:main reviewer:bob").query == ProposalQuery(
        draft=True, base="main", reviewer="bob"
    )
    assert parse("issues", "see https://example.org/x: 12:30").free == "see https://example.org/x: 12:30"
    assert parse("issues", "", "all").query == IssueQuery(state="all")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("milestone:x", "milestone: is not a word of this filter; there are state: label: author: assignee:"),
        ("reviewer:bob", "reviewer: is not a word"),
        ("state:merged", "state: is one of open, closed, all, not merged"),
        ("label:", "label: needs a value, such as label:NAME"),
        ("author:@", "author"),
    ],
)
def test_what_is_no_word_is_named(text: str, why: str) -> None:
    with pytest.raises(UsageError) as error:
        parse("issues", text)
    assert why in error.value.detail


def test_words_and_their_values_are_completed() -> None:
    def values(word: str) -> list[str]:
        return {"label": ["bug", "build", "good first"], "author": ["ana"]}.get(word, [])

    assert complete("issues", "", values) == ("", ["state:", "label:", "author:", "assignee:"])
    assert complete("issues", "la", values) == ("label:", ["label:"])
    assert complete("issues", "x a", values) == ("x a", ["author:", "assignee:"])
    assert complete("issues", "as", values)[0] == "assignee:"
    assert complete("issues", "label:b", values) == ("label:bu", ["label:bug", "label:build"])
    assert complete("issues", "label:bug", values) == ("label:bug ", ["label:bug"])
    assert complete("issues", "label:g", values)[0] == 'label:"good first" '
    assert complete("issues", "author:", values)[1] == ["author:@me", "author:ana"]
    assert complete("issues", "state:c", values)[0] == "state:closed "
    assert complete("issues", "what:x", values) == ("what:x", [])


@pytest.fixture
def listed(project: str, alice: Svc) -> str:
    """Three issues: one with a label, one of it closed."""
    assert alice("label", "create", "bug").code == 0
    assert alice("issue", "create", "-t", "Stalls at night", "-l", "bug", "-a", "@me").code == 0
    assert alice("issue", "create", "-t", "Crash at start", "-l", "bug").code == 0
    assert alice("issue", "create", "-t", "A question").code == 0
    assert alice("issue", "close", "2").code == 0
    return project


async def test_the_filter_asks_the_server_by_words(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "3")
        assert "Issues open · 2" in text
        text = await press(pilot, "slash", *"la")
        assert "label:" in text.splitlines()[-2]
        text = await press(pilot, "tab", "b", "tab")
        assert "label:bug · enter lists" in text
        text = await press(pilot, *"state:cl", "tab", "enter")
        assert "Issues closed · label:bug · 1" in text
        assert text.splitlines()[-1].startswith(" esc clears  / changes")
        assert "Crash at start" in text and "Stalls" not in text
        await press(pilot, "o")
        text = await sees(pilot, "Issues all · label:bug · 2", "││ Crash at start")
        assert "A question" not in text
        await press(pilot, "slash", *"night", "enter")  # a word of its own, beside those that stand there
        await soon(pilot, lambda: "Stalls" in shown(pilot.app) and "Crash" not in shown(pilot.app))
        await press(pilot, "slash", *" state:x", "enter")
        await sees(pilot, "state: is one of")
        await press(pilot, "escape")
        assert "state: is one of" not in shown(pilot.app)
        text = await press(pilot, "slash", *(["backspace"] * 60), *"assignee:@me", "enter")
        assert "Issues open · assignee:@me · 1 of 2" in text and "Stalls" in text
        text = await press(pilot, "slash", *(["backspace"] * 60), *"milestone:x", "enter")
        assert "milestone: is not a word of this filter" in text
        assert text.splitlines()[-1] == " / milestone:x"  # to be corrected
        text = await press(pilot, *(["backspace"] * 60), "enter")
        assert "Issues open · 2" in text


@pytest.mark.parametrize("width", [80, 100, 140])
async def test_the_title_says_the_filter(listed: str, open_app: Open, width: int) -> None:
    async with open_app().run_test(size=(width, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "3")
        assert "Issues open · 2" in text
        text = await press(pilot, "slash")
        assert "label:" in text.splitlines()[-1] and text.splitlines()[-1].startswith(" / ")
        text = await press(pilot, *"night")
        assert "Issues open · night · 1 of 2" in text
        text = await press(pilot, "enter")
        assert "Issues open · night · 1 of 2" in text
        text = await press(pilot, "slash", *" label:bug", "enter")
        assert "label:bug night · 1 of 2" in text
        assert text.splitlines()[-1].startswith(" esc clears  / changes")
        text = await press(pilot, "escape")
        assert "Issues open · 2" in text and "esc clears" not in text


async def test_the_frame_of_any_list_says_its_filter(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(120, 24)) as pilot:
        await settle(pilot)
        text = await press(pilot, "slash", *"project", "enter")
        assert "Home · project" in text
        await press(pilot, "escape", "enter", "8")
        await press(pilot, "slash", *"visib", "enter")
        assert "Settings · visib" in await press(pilot, "j")


async def test_title_and_position_stay_above_a_list_without_a_frame(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(80, 8)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "Issues open · 2", "1 of 2")
        text = await press(pilot, "j")
        assert "Issues open · 2" in text and "2 of 2" in text
        await pilot.resize_terminal(80, 6)
        await sees(pilot, "Issues open · 2", "2 of 2")


async def test_esc_leaves_the_filter_as_it_was(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        await press(pilot, "3")
        text = await press(pilot, "slash", *"night")
        listed_rows = "\n".join(line[:41] for line in text.splitlines())  # the preview follows a moment later
        assert "A question" not in listed_rows
        text = await press(pilot, "escape")
        assert "A question" in text and "Stalls" in text


async def test_esc_takes_a_filter_away_before_it_leaves(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(99, 24)) as pilot:
        await settle(pilot)
        text = await press(pilot, "slash", *"no such repository", "enter")
        assert listed not in text
        assert listed in await press(pilot, "escape")
        await press(pilot, "enter", "3")
        text = await press(pilot, "o", "o", "slash", *" label:bug night", "enter")
        assert "Stalls" in text and "Crash" not in text
        text = await press(pilot, "escape")
        assert "Issues all · 3" in text and "Crash" in text
        await press(pilot, "2")
        text = await press(pilot, "slash", *"readme", "enter")
        assert "README.md" in text and "data.bin" not in text
        assert "data.bin" in await press(pilot, "escape")
        assert "Repositories" in await press(pilot, "escape")


async def test_q_leaves_with_a_filter(listed: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await press(pilot, "slash", *"night", "enter")
        assert "Repositories" in await press(pilot, "q")


async def test_proposals_have_words_of_their_own(proposal: str, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter")
        text = await press(pilot, "3", "p")
        assert "Proposals open · 1" in text
        text = await press(pilot, "slash", *"head:to", "tab", "enter")
        assert "Proposals open · head:topic · 1" in text
        text = await press(pilot, "slash", *(["backspace"] * 40), *"state:merged", "enter")
        assert "Proposals merged · 0" in text


def test_the_line_mode_takes_the_same_words(listed: str, typed) -> None:  # type: ignore[no-untyped-def]
    from tests.tui.test_plain import choice

    number = choice(typed("1", "q").out, "issues")
    out = typed("1", number, "/state:closed label:bug", "q").out.split("? help")[-2]
    assert "filter: state:closed label:bug" in out
    assert "Crash at start" in out and "Stalls" not in out and "question" not in out
    out = typed("1", number, "/label:bug night", "q").out.split("? help")[-2]
    assert "Stalls" in out and "Crash" not in out
    assert "milestone: is not a word of this filter" in typed("1", number, "/milestone:x", "q").out
    assert os.environ["TEST_HANDLE"] in out


async def test_a_list_whose_filter_matches_nothing_says_that(listed: str, open_app: Open) -> None:
    """Every list of the app, and by words that the server is asked for."""
    unmatched = "nothing matches; esc lists all"
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        for way in ([], ["enter", "2"], ["3"], ["p"], ["4"], ["5"], ["6"], ["7"], ["8"]):
            text = await press(pilot, *way, "slash", *"zqzqzq", "enter")
            assert unmatched in text or "nothing matches; type what" in text, (way, text)
            assert "yet" not in text and "a opens one" not in text and "a makes one" not in text, text
            assert unmatched not in await press(pilot, "escape")
        text = await press(pilot, "3", "p", "slash", *"label:none", "enter")
        assert "no issues match; change it with /" in text
        assert "no open proposals; a opens one" in await press(pilot, "p")
        assert "no proposals match; change it with /" in await press(pilot, "o")
