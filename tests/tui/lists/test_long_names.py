"""Names that are longer than their place keep their end, and stay apart from what stands beside them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from rich.cells import cell_len

from tests.svc.conftest import Svc
from tests.tui.test_app import press, project, sees, settle
from tui.app import SvcApp
from tui.text import cut_middle, cut_middle_of_part

__all__ = ["project"]
LONG = "connection-pooling-with-keepalive-and-retries-for-the-client"


def test_a_long_name_keeps_its_end() -> None:
    assert cut_middle("feature/retries-http2", 12) == "featu…-http2"
    assert cut_middle("short", 12) == "short"
    assert [cut_middle("four", width) for width in (0, 1, 2, 3, 4)] == ["", "…", "f…", "…ur", "four"]
    assert cell_len(cut_middle("試験試験試験", 8)) == 8


@pytest.mark.parametrize("width", range(20, 60))
def test_the_middle_of_a_name_is_cut_for_what_stands_beside_it(width: int) -> None:
    left, right = (("● ", "good"), (f"{LONG}-2", "text"), ("  ○ #9", "good")), (("@ana   3m", "dim"),)
    given = cut_middle_of_part(left, 1, right, width)
    cells = sum(cell_len(text) for text, _ in given)
    assert given[0] == left[0] and given[2] == left[2]
    assert given[1][0].endswith("-2")
    assert cells + 1 + 9 == width or width < 30
    assert cut_middle_of_part(left, 1, right, 120) == left


async def test_ends_are_shown(project: str, alice: Svc, open_app: Callable[..., SvcApp]) -> None:
    for end in ("1", "2"):
        assert alice("repo", "create", f"{LONG}-{end}").code == 0
        assert alice("repo", "branch", f"{LONG}-{end}", "-R", project).code == 0
    async with open_app().run_test(size=(80, 24)) as pilot:
        await sees(pilot, "-1  private", "-2  private", "Repositories 3")
        await press(pilot, "w")
        await sees(pilot, "-1  private", "-2  private", "Yours 3")
        await press(pilot, "escape")
        await settle(pilot)
        await press(pilot, *"/project", "enter", "enter")
        await press(pilot, "b")
        await sees(pilot, "e-client-1 ", "e-client-2 ", "Branches 3")
