"""What a row shows where it has little room, and charts of few weeks."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.model.base import Actor
from localstore.core.model.inbox import InboxItem, InboxRepo, InboxSubject
from tests.svc.conftest import Svc
from tests.tui.proposal.test_proposals import proposal
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.screens.lists.inbox import Space, row
from tui.screens.talk.issues import _fit_labels

__all__ = ["project", "proposal"]
Open = Callable[..., SvcApp]
TITLE = "UnicodeDecodeError when the server lies"


def item(number: int | None) -> InboxItem:
    kind = "issue" if number else "repository"
    subject = InboxSubject(kind, number, TITLE, "open")  # type: ignore[arg-type]
    at, who = "2026-11-27T01:00:00Z", Actor("1", "alice")
    return InboxItem("1", InboxRepo("1", "a/httpx"), subject, "mention", True, False, at, "", who)


def words(columns: int, number: int | None = 3) -> str:
    return "".join(text for text, _ in row(item(number), 0.0, Space(True, False, "", columns)).left)


def test_a_narrow_row_of_the_inbox_drops_the_number_before_the_title() -> None:
    assert words(80) == f"● mention httpx#3 {TITLE}"
    assert words(50) == f"● mention {TITLE}"
    assert "httpx" in words(50, None), "it alone says which repository it is"


def test_as_many_labels_as_fit_are_listed() -> None:
    def labels(room: int) -> str:
        return "".join(text for text, _ in _fit_labels(["bug", "docs", "perf"], {}, room))

    assert labels(40) == "  ● bug  ● docs  ● perf"
    assert labels(20) == "  ● bug  ● docs+1"
    assert labels(3) == "  ● bug+2", "the first always stands"
    assert not _fit_labels([], {}, 40)


async def test_the_title_says_how_many_p_lists(proposal: str, alice: Svc, open_app: Open) -> None:
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "3")
        await sees(pilot, "Issues open · 0   p proposals 1")
        await press(pilot, "p")
        await sees(pilot, "Proposals open · 1   p issues")


async def test_an_attempt_does_not_cut_the_seal(project: str, alice: Svc, open_app: Open) -> None:
    for _ in range(2):
        assert alice("repo", "run", "create", "wheels-of-linux", "--conclusion", "failure").code == 0
    async with open_app().run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await press(pilot, "enter", "4")
        text = await sees(pilot, "Other runs 1", "wheels-of-linux")
        rows = [line for line in text.split("\n") if "fail    wheels-of-linux" in line[:42]]
        assert len(rows) >= 2 and all("…" not in line[:42] for line in rows), rows
