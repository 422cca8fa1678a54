"""What a watcher makes of checks and events, by itself; as a program it is tested in tests/campaign."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from localstore.core.model.check import SealCheck
from localstore.core.model.run import state_of
from localstore.core.model.sync import Event
from svc.flows.waiting.checks import Options, apply_event, decide_outcome, select_counted

SEAL = "5" * 64
NAMES = ("docs", "lint", "test")
STEPS = [("queued", None), ("in_progress", None)]
ENDS = ["success", "failure", "neutral", "cancelled", "skipped", "timed_out"]


def event(name: str, attempt: int, status: str, conclusion: str | None, **more: Any) -> Event:
    data = {"seal": SEAL, "name": name, "attempt": attempt, "status": status, "conclusion": conclusion}
    return Event(id=1, repo_id="r", kind="run.update", data={**data, "run": "1", **more})


def check(name: str, state: Any, attempt: int = 1, required: bool = False) -> SealCheck:
    return SealCheck(
        name=name,
        state=state,
        required=required,
        attempt=attempt,
        summary="before",
        details_url=None,
        seal_id=SEAL,
        started_at=None,
        completed_at=None,
        run_id="1",
    )


@st.composite
def stories(draw: st.DrawFn) -> list[tuple[str, int, str, str | None]]:
    """What happens to the runs of a seal, in order."""
    told = []
    for name in NAMES:
        for attempt in range(1, draw(st.integers(0, 3)) + 1):
            told += [(name, attempt, *step) for step in STEPS[: draw(st.integers(0, 2))]]
            told.append((name, attempt, "completed", draw(st.sampled_from(ENDS))))
    return told


def after(story: list[tuple[str, int, str, str | None]]) -> dict[str, tuple[int, str]]:
    """How the checks stand: the newest attempt of each."""
    return {name: (attempt, state_of(status, end)) for name, attempt, status, end in story}


@given(stories(), st.data())
def test_events_after_a_read_lead_to_what_the_relay_has(
    story: list[tuple[str, int, str, str | None]], data: st.DataObject
) -> None:
    """The socket may begin before what the read saw: older events come again and change nothing."""
    since = data.draw(st.integers(0, len(story)))
    read = data.draw(st.integers(since, len(story)))
    items = [check(name, state, attempt) for name, (attempt, state) in after(story[:read]).items()]
    shown = [{one.name: (one.attempt, one.state) for one in items}]
    for told in story[since:]:
        items = apply_event(items, event(*told), SEAL) or items
        shown.append({one.name: (one.attempt, one.state) for one in items})
    assert shown[-1] == after(story)
    for old, new in pairwise(shown):
        for name, (attempt, state) in old.items():
            assert new[name] >= (attempt, "") and (
                new[name][0] > attempt or state in ("pending", new[name][1])
            )
    assert [one.name for one in items] == sorted(one.name for one in items) or since == len(story)


def test_what_is_not_about_this_seal_is_passed_over() -> None:
    items = [check("test", "pending")]
    assert apply_event(items, event("test", 1, "completed", "success", seal="6" * 64), SEAL) is None
    assert apply_event(items, event("test", "2", "completed", "success"), SEAL) is None  # type: ignore[arg-type]
    live = Event(id=1, repo_id="r", kind="live", data={"seal": SEAL, "name": "test", "attempt": 2})
    assert apply_event(items, live, SEAL) is None
    assert apply_event(items, event("test", 1, "queued", None), SEAL) is None


def test_a_new_attempt_has_nothing_of_the_old_one() -> None:
    (again,) = (
        apply_event([check("Test", "fail", required=True)], event("test", 2, "queued", None), SEAL) or []
    )
    assert (again.name, again.state, again.attempt, again.summary, again.required) == (
        "test",
        "pending",
        2,
        None,
        True,
    )


@given(st.lists(st.tuples(st.sampled_from(["pass", "fail", "pending", "skip", "cancel"]), st.booleans())))
def test_a_verdict_is_about_what_counts(found: list[tuple[str, bool]]) -> None:
    items = [check(f"c{n}", state, required=required) for n, (state, required) in enumerate(found)]
    for required in (False, True):
        options = Options(required=required)
        states = {one.state for one in select_counted(items, options)}
        bad = bool(states & {"fail", "cancel"})
        expected = None if "pending" in states else "failed" if bad else "passed" if states else "none"
        assert decide_outcome(items, options) == expected
        assert decide_outcome(items, Options(required=required, fail_fast=True)) == (
            "failed" if bad else expected
        )
    assert select_counted(items, Options(only="C0")) == items[:1]
