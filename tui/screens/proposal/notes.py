"""Shows the threads about lines of a proposal, as cards below these lines."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len

from localstore.core.model.thread import Thread
from tui.text import Part, ago, fit, safe
from tui.texts import first_words
from tui.widgets.diff import Room, Rooms
from tui.widgets.lines import Item
from tui.widgets.patch import Spot

if TYPE_CHECKING:
    from tui.markdown.words import Row

FRAME = 4  # columns of a card beside its text
Texts = Callable[[str, int], "Sequence[Row]"]
"""Returns the rows of a text in a width."""


class Note(NamedTuple):
    """The key of a row of a thread, which is shown below the lines that the thread is about. `thread`: the id
    of the thread. `row`: number of the row in its card."""

    thread: str
    row: int
    comment: str = ""  # the id of the comment that the row is of


def notes(
    threads_of_proposal: Sequence[Thread],
    rows_of: Texts,
    now: float,
    rooms: Rooms,
    unfolded: Container[str] = (),
    replaced: Callable[[Thread], Sequence[str]] = lambda thread: (),
) -> dict[Spot, list[Item]]:
    """Returns the rows of the threads, by the line below which they are shown. That is the last line that a
    thread is about, on the old or the new side. `rows_of`: the Markdown texts of the screen, which make the
    rows of comments. `rooms`: the columns for the rows on each side. `unfolded`: ids of the resolved threads
    that are shown as cards all the same. `replaced`: returns the lines that the suggestion of a thread
    replaces."""
    items_by_spot: dict[Spot, list[Item]] = {}
    for thread in threads_of_proposal:
        at = thread.place
        if at is None:
            continue
        room = rooms.old if thread.side == "old" else rooms.new
        rows = (
            _fold_thread(thread, room, now)
            if thread.state == "resolved" and thread.id not in unfolded
            else _card(thread, rows_of, now, room, replaced(thread))
        )
        items = [Item(Note(thread.id, place, of), parts) for place, (of, parts) in enumerate(rows)]
        items_by_spot.setdefault(Spot(at.path, thread.side, at.end), []).extend(items)
    return items_by_spot


Line = tuple[str, tuple[Part, ...]]
"""The id of the comment that a row is of, and its parts."""


def _state(thread: Thread) -> str:
    """Returns the state of a thread as text, with its lines and its number of comments."""
    words: str = "waits for your review" if thread.draft else thread.state
    at = thread.place
    if at is not None and at.how != "same":
        words += f", {at.how}"
    if at is not None and at.start != at.end:
        words += f" · lines {at.start} to {at.end}"
    if thread.suggestion is not None and thread.suggestion.applied_seal:
        words += " · applied"
    count = len(thread.comments)
    return f"{words} · {count} comments" if count > 1 else words


def _fold_thread(thread: Thread, room: Room, now: float) -> list[Line]:
    """Returns the single row of a resolved thread."""
    first = thread.comments[0] if thread.comments else None
    words = f"  @{safe(first.author.handle or '?')}: {safe(first_words(first.body))}" if first else ""
    parts = fit(((f"─ ✓ {_state(thread)}", "good"), (words, "dim")), room.width)
    return [(first.id if first else "", ((" " * room.left, "text"), *parts))]


def _card(thread: Thread, rows_of: Texts, now: float, room: Room, replaced: Sequence[str]) -> list[Line]:
    role = "warn" if thread.draft else "line" if thread.state == "resolved" else "accent"
    inside = room.width - FRAME
    last = thread.comments[-1].id if thread.comments else ""
    head: Part = (
        (f"─ ✓ {_state(thread)} ", "good") if thread.state == "resolved" else (f"─ {_state(thread)} ", role)
    )
    title = fit((head,), room.width - 2)
    used = sum(cell_len(text) for text, _ in title)
    first = thread.comments[0].id if thread.comments else ""
    rows: list[Line] = [(first, (("╭", role), *title, ("─" * (room.width - 2 - used) + "╮", role)))]

    def add(comment: str, parts: Sequence[Part]) -> None:
        fitting = fit(parts, inside)
        rest = " " * (inside - sum(cell_len(text) for text, _ in fitting))
        rows.append((comment, (("│ ", role), *fitting, (f"{rest} │", role))))

    def add_suggestion(comment: str, text: str, *, applied: bool) -> None:
        add(comment, (("✓ applied" if applied else "suggests", "good" if applied else "dim"),))
        for line in replaced:
            add(comment, ((f"- {safe(line)}", "delete"),))
        for line in text.split("\n"):
            add(comment, ((f"+ {safe(line)}", "add"),))

    for place, comment in enumerate(thread.comments):
        who = f"@{safe(comment.author.handle or '?')} "
        when = ago(comment.created_at, now) + (" · waits" if comment.draft and not thread.draft else "")
        add(comment.id, ((who, "person"), (when, "dim")))
        for row in rows_of(comment.body, inside):
            add(comment.id, row.parts)
        if place == 0 and thread.suggestion is not None:
            add_suggestion(
                comment.id, thread.suggestion.text, applied=thread.suggestion.applied_seal is not None
            )
    rows.append((last, (("╰" + "─" * (room.width - 2) + "╯", role),)))
    blank: Part = (" " * room.left, "text")
    return [(comment, (blank, *parts)) for comment, parts in rows]
