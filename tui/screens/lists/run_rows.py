"""Rows about a run of a check: its state, facts and summary, and how earlier runs of the same check have
ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from localstore.core.model.run import Run
from tui.blocks import Block, lay_blocks
from tui.charts import bar, sparkline
from tui.screens.facts import fact_rows
from tui.screens.proposal.words import sign_of_run
from tui.text import Part, ago, brief, safe
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from tui.markdown.words import Row

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
UNSAID = ("timed_out", "neutral")  # conclusions that the word of the state does not say
RECENT = 20  # runs of a check that its history shows
LISTED = 12  # the same, with a row each
ATTEMPTS = 64  # columns from which a run of the history says its attempt and who reported it
TIMES = 12  # columns of the bar of a duration, at most


def _facts_of(run: Run, now: float) -> list[tuple[str, Part]]:
    """Returns (name, value as a part) of each fact about a run."""
    facts = [
        ("seal", run.seal_id[:12], "accent"),
        ("branch", run.branch, "text"),
        ("attempt", str(run.attempt), "text"),
        ("reported", f"@{run.reported_by.handle or '?'} {ago(run.created_at, now)}", "text"),
        ("started", ago(run.started_at or "", now), "text"),
        ("completed", ago(run.completed_at or "", now), "text"),
        ("took", duration(seconds_of(run)), "text"),
    ]
    return [(name, (safe(value), role)) for name, value, role in facts if value]


def fact_items(run: Run, now: float) -> list[Item]:
    """Returns the facts about a run as rows of the column of facts."""
    return [row for name, value in _facts_of(run, now) for row in fact_rows(name, [value])]


def run_rows(
    run: Run,
    now: float,
    text_rows: Callable[[str], Sequence[Row]],
    beside: bool = False,
    others: Sequence[Run] = (),
    width: int = 0,
    blocks: Sequence[Block] = (),
    listed: bool = False,
) -> list[Row | Line]:
    """Returns the rows of a run: its state, facts, summary and earlier runs, and what the user can do next.
    `text_rows`: turns the summary into rows. `beside`: a separate column shows the facts, so they are left
    out here. `others`: the runs of the repository, the newest first. `width`: the columns for the earlier
    runs and the `blocks`. If it is 0, there is no room for them. `listed`: a list beside has a row for each
    earlier run, so they are only summed up here."""
    conclusion = run.conclusion.replace("_", " ") if run.conclusion in UNSAID else ""
    rows: list[Row | Line] = [(sign_of_run(run), (f" {safe(run.name)}", "title"), (f"  {conclusion}", "dim"))]
    if not beside:
        rows += [((f"{name:<10}", "dim"), value) for name, value in _facts_of(run, now)]
    if run.details_url:
        rows.append(_details(run.details_url))
    rows += [BLANK, *text_rows(run.summary or "no summary")]
    rows += [BLANK, _next(run)] if width else []
    same = [other for other in others if other.name == run.name]
    if width:
        history = Block(
            f"Runs of {safe(run.name)}",
            lambda wide: _history(same) if listed else _runs_of(run, same, wide, now),
            str(len(same)),
        )
        return [*rows, BLANK, *lay_blocks([history, *blocks] if len(same) > 1 else blocks, width)]
    if len(same) > 1:
        rows += [BLANK, *_history(same)]
    return [*rows, BLANK, _next(run)]


def _runs_of(run: Run, same: Sequence[Run], width: int, now: float) -> list[Line]:
    """Returns rows about the runs of one check. The first rows show how its runs have ended. Then follows a
    row for each of the newest runs. `run`: the run whose row is marked. `same`: the runs of the check, the
    newest first."""
    times = [seconds for seconds in map(seconds_of, same[:LISTED]) if seconds is not None]
    most = max(times, default=0)
    rows: list[Line] = [*_history(same), BLANK]
    for other in same[:LISTED]:
        mark: Part = ("▌", "accent") if other.id == run.id else (" ", "text")
        seconds = seconds_of(other)
        when = brief(other.completed_at or other.started_at or other.created_at, now)
        parts: list[Part] = [
            mark,
            sign_of_run(other),
            (f" {other.seal_id[:8]}", "accent"),
            (f" {when:>4}", "dim"),
        ]
        if most:
            room = max(4, min(TIMES, width - 36))
            drawn = bar(seconds, most, room, "dim") if seconds is not None else ((" " * room, "text"),)
            parts += [("  ", "text"), *drawn, (f" {duration(seconds):<10}", "text")]
        if width >= ATTEMPTS:
            parts.append((f"  attempt {other.attempt}", "dim"))
            parts.append((f"  @{safe(other.reported_by.handle or '?')}", "person"))
        elif not most and other.attempt > 1:
            parts.append((f"  attempt {other.attempt}", "dim"))
        rows.append(tuple(parts))
    if len(same) > LISTED:
        rows.append(((f"  and {len(same) - LISTED} older", "dim"),))
    return rows


def _history(same: Sequence[Run]) -> list[Line]:
    """Returns rows that say how the last runs of a check have ended and how long they took. The newest run is
    on the right. `same`: the runs of the check, the newest first."""
    newest = list(reversed(same[:RECENT]))
    signs: list[Part] = [(words[0], role) for words, role in map(sign_of_run, newest)]
    rows: list[Line] = [
        (("runs      ", "dim"), *signs, (f"  the last {len(newest)}, oldest to newest", "dim"))
    ]
    times = [seconds for seconds in map(seconds_of, newest) if seconds is not None]
    if len(times) > 1:
        middle = sorted(times)[len(times) // 2]
        rows.append((("took      ", "dim"), *sparkline(times), (f"  mostly {duration(middle)}", "dim")))
    return rows


def _next(run: Run) -> Line:
    """Returns a row that says what the user can do about a run."""
    if run.status == "completed":
        return (("u ", "accent"), ("runs it again", "dim"))
    waits = "nobody has begun it yet" if run.status == "queued" else "it is running"
    return (("x ", "accent"), (f"cancels it; {waits}", "dim"))


def _details(address: str) -> Row:
    from tui.markdown.words import Row

    return Row((("details   ", "dim"), (safe(address), "link")), (address,))


def seconds_of(run: Run) -> int | None:
    """Returns how many seconds a run took. Returns None if it has not begun or not ended."""
    if not run.started_at or not run.completed_at:
        return None
    span = datetime.fromisoformat(run.completed_at) - datetime.fromisoformat(run.started_at)
    return max(0, int(span.total_seconds()))


def duration(seconds: int | None) -> str:
    """Returns a duration in words, such as `2 min 5 s`. Returns "" for None and for 0 seconds."""
    minutes, rest = divmod(seconds or 0, 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s" if rest else ""


def attempt_words(number: int) -> str:
    """Returns the number of an attempt in words. Returns "" for the first attempt."""
    return f"attempt {number}  " if number > 1 else ""
