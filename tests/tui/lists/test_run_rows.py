"""A run as rows: how long earlier runs of its check took."""

from __future__ import annotations

from localstore.core.model.base import Actor
from localstore.core.model.run import Run
from tui.screens.lists.run_rows import run_rows
from tui.text import Part


def run_of(number: int, seconds: int) -> Run:
    minutes, rest = divmod(seconds, 60)
    begins, ends = "2026-11-27T01:00:00Z", f"2026-11-27T01:{minutes:02}:{rest:02}Z"
    who = Actor("1", "alice")
    seal = "a" * 64
    return Run(
        f"{number}",
        "lint",
        seal,
        "main",
        number,
        "completed",
        "success",
        None,
        None,
        who,
        begins,
        begins,
        ends,
    )


def texts(rows: list[tuple[Part, ...]]) -> list[str]:
    return ["".join(text for text, _ in row) for row in rows]


def test_the_longest_run_of_a_check_has_the_longest_bar() -> None:
    short, long = run_of(1, 5), run_of(2, 65)
    rows = texts(run_rows(short, 0.0, lambda text: [((text, "text"),)], True, [long, short], 60))  # type: ignore[arg-type]
    bars = [row.count("━") for row in rows if "━" in row]
    assert bars == [12, 1]
    assert [row for row in rows if row.endswith(" 1 min 5 s")] and [
        row for row in rows if row.endswith(" 5 s")
    ]
    assert [row for row in rows if row.startswith("▌✓ pass")], "the shown run is marked"


def test_each_attempt_has_its_number_and_who_reported_it() -> None:
    first, second = run_of(1, 5), run_of(2, 65)

    def made(width: int) -> list[str]:
        return texts(run_rows(first, 0.0, lambda text: [], True, [second, first], width))  # type: ignore[arg-type]

    assert [row.split("attempt")[1] for row in made(80) if "attempt" in row] == [" 2  @alice", " 1  @alice"]
    assert not any("attempt" in row for row in made(60))
