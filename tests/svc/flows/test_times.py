"""Times as people type them, and lines of a file."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from localstore.core.errors import NotFound, ServerMisbehaved, UsageError
from localstore.core.model.base import Actor
from localstore.core.model.history import SealProvenance, SealSummary
from svc.flows.history.blame import BlamedLine, span_of, within
from svc.flows.history.log import SealFilter
from svc.flows.history.times import moment

NOW = datetime(2026, 3, 10, 15, 30, tzinfo=timezone(timedelta(hours=2)))
DAY = NOW.replace(hour=0, minute=0)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("now", NOW),
        ("today", DAY),
        ("yesterday", DAY - timedelta(days=1)),
        ("2026-03-01", datetime(2026, 3, 1, tzinfo=NOW.tzinfo)),
        ("2026-03-01T12:00", datetime(2026, 3, 1, 12, tzinfo=NOW.tzinfo)),
        ("2026-03-01 12:00:00Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("3 days ago", NOW - timedelta(days=3)),
        ("1 week ago", NOW - timedelta(weeks=1)),
        ("2.weeks.ago", NOW - timedelta(weeks=2)),
        ("2w", NOW - timedelta(weeks=2)),
        ("90 minutes", NOW - timedelta(minutes=90)),
        ("12H", NOW - timedelta(hours=12)),
        ("1 month ago", NOW - timedelta(days=30)),
    ],
)
def test_a_time_as_people_type_it(typed: str, expected: datetime) -> None:
    assert moment(typed, NOW, "--since") == expected


def test_the_end_of_a_day_is_its_last_moment() -> None:
    for typed, day in (("2026-03-01", datetime(2026, 3, 1, tzinfo=NOW.tzinfo)), ("today", DAY)):
        assert moment(typed, NOW, "--until", end=True) == day + timedelta(days=1, microseconds=-1)
    assert moment("3d", NOW, "--until", end=True) == NOW - timedelta(days=3)


@pytest.mark.parametrize("typed", ["20260310", "2026-W11-2", "2026W112"])
def test_a_day_in_another_form_is_a_whole_day_too(typed: str) -> None:
    assert moment(typed, NOW, "--until", end=True).isoformat()[:19] == "2026-03-10T23:59:59"


@pytest.mark.parametrize("said", ["", "yesterday", "2026-13-01T00:00:00Z", "\x1b[2J"])
def test_a_server_that_says_no_time_is_told_so(said: str) -> None:
    with pytest.raises(ServerMisbehaved, match="at no time"):
        SealFilter(since=NOW).has(sealed(said))
    assert SealFilter(since=NOW).has(sealed("2026-03-11T00:00:00"))


def sealed(at: str) -> SealSummary:
    who = Actor(id="1", handle="ann", kind="user")
    said = SealProvenance(who=who, device_key_id="k", capability="device")
    return SealSummary("ab" * 32, "ab" * 32, "main", [], "cd" * 32, "m", said, at)


@pytest.mark.parametrize(
    "typed", ["", "soon", "2026-02-30", "3 fortnights", "99999 years ago", "-1d", "\x1b"]
)
def test_what_is_not_a_time_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        moment(typed, NOW, "--since")


@pytest.mark.parametrize(
    ("typed", "span"),
    [("4", (4, 4)), ("2,5", (2, 5)), ("2,+3", (2, 4)), ("7,", (7, None)), (",3", (1, 3))],
)
def test_a_span_of_lines(typed: str, span: tuple[int, int | None]) -> None:
    assert span_of(typed) == span


@pytest.mark.parametrize("typed", [",", "0", "5,2", "a,b", "+3", ",+3", "2,+", "1,2,3", "-1", "/x/,/y/"])
def test_what_is_not_a_span_is_a_usage_error(typed: str) -> None:
    with pytest.raises(UsageError):
        span_of(typed)


def test_lines_within_a_span() -> None:
    found = [BlamedLine(n, "s", "a", "t", str(n)) for n in range(1, 6)]
    assert [one.line for one in within(found, (2, 3), "f")] == [2, 3]
    assert [one.line for one in within(found, (4, 99), "f")] == [4, 5]
    assert [one.line for one in within(found, (4, None), "f")] == [4, 5]
    with pytest.raises(NotFound, match="f has 5 lines"):
        within(found, (6, 7), "f")
