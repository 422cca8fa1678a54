"""Columns: what a list shows, the same fields in the same order on a terminal and in a pipe."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from localstore.core.paths import terminal_safe

Record = dict[str, Any]
ID_CHARS = 12  # of a seal id or key id on a terminal
COLUMN_MIN = 3
STATES = {  # colours that repeat what the word says
    **dict.fromkeys(("new", "active", "registered"), "green"),
    **dict.fromkeys(("changed", "archived", "unchecked", "skipped"), "yellow"),
    **dict.fromkeys(("removed", "deleted", "revoked"), "red"),
}


class Column(msgspec.Struct, frozen=True):
    """One field of a list or record. `get` derives it from the whole record; without it the field is the
    member called `name`. `kind` says how people read it; programs always get the whole value."""

    name: str
    get: Callable[[Record], Any] | None = None
    kind: Literal["text", "time", "size", "id", "line", "state"] = "text"

    def value(self, record: Record) -> Any:
        return self.get(record) if self.get else record.get(self.name)


def plain(value: Any) -> str:
    """A value for a program: no tab or line break can appear in it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(plain(item) for item in value)
    return terminal_safe(str(value))


def human(value: Any, kind: str, now: datetime) -> str:
    """A value for a person."""
    if isinstance(value, bool):
        return "yes" if value else ""
    text = plain(value)
    if kind == "time":
        return age(text, now)
    if kind == "size" and isinstance(value, int):
        return size(value)
    if kind == "id":
        return text[:ID_CHARS]
    if kind == "line":
        return plain(str(value or "").partition("\n")[0])
    return text


def tsv(records: Iterable[Record], columns: Sequence[Column]) -> Iterator[str]:
    """One line for each record."""
    for record in records:
        yield "\t".join(plain(column.value(record)) for column in columns)


def aligned(
    records: Iterable[Record],
    columns: Sequence[Column],
    width: int,
    now: datetime,
    tint: Callable[[str, str], str] = lambda text, _colour: text,
) -> Iterator[str]:
    """A header and one line for each record, fitted into `width` columns by cutting the widest ones. A column
    that is empty in every record is left away. `tint(text, colour)` colours states."""
    found = list(records)
    rows = [[human(column.value(record), column.kind, now) for column in columns] for record in found]
    shown = [at for at in range(len(columns)) if not rows or any(row[at] for row in rows)]
    columns, rows = [columns[at] for at in shown], [[row[at] for at in shown] for row in rows]
    header = [column.name.upper().replace("_", " ") for column in columns]
    widths = [max(cells(text) for text in texts) for texts in zip(header, *rows, strict=True)]
    room = width - 2 * (len(columns) - 1)
    while sum(widths) > room and max(widths) > COLUMN_MIN:
        widths[widths.index(max(widths))] -= 1
    yield "  ".join(map(_fit, header, widths)).rstrip()
    for row in rows:
        fitted = map(_fit, row, widths)
        yield "  ".join(
            tint(text, STATES.get(text.strip(), "")) if column.kind == "state" else text
            for text, column in zip(fitted, columns, strict=True)
        ).rstrip()


def listed(record: Record, columns: Sequence[Column], now: datetime) -> Iterator[str]:
    """One record for a person: a line for each field that has a value."""
    names = [column.name.replace("_", " ") for column in columns]
    wide = max(map(len, names))
    for name, column in zip(names, columns, strict=True):
        text = human(column.value(record), column.kind, now)
        if text:
            yield f"{name:<{wide}}  {text}"


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def age(text: str, now: datetime) -> str:
    """An RFC 3339 time as people say it; times far away as a date."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (now - moment).total_seconds()
    except (ValueError, TypeError):
        return text
    ahead, seconds = seconds < 0, abs(seconds)
    for length, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= length:
            count = int(seconds // length)
            if unit == "day" and count > 30:
                return moment.astimezone(UTC).strftime("%Y-%m-%d")
            said = f"{count} {unit}{'' if count == 1 else 's'}"
            return f"in {said}" if ahead else f"{said} ago"
    return "soon" if ahead and seconds > 5 else "just now"


def size(count: float) -> str:
    """Bytes in binary units, such as `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes everything")


def _fit(text: str, width: int) -> str:
    missing = width - cells(text)
    if missing >= 0:
        return text + " " * missing
    kept = ""
    for char in text:
        if cells(kept + char) > width - 1:
            break
        kept += char
    return kept + "…" + " " * (width - 1 - cells(kept))
