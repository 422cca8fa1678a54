"""Columns and tables. A list has the same fields, in the same order, on a terminal and in a pipe."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec

from localstore.core.paths import terminal_safe

Record = dict[str, Any]
ID_CHARS, ID_CHARS_NARROW = 12, 7  # of a seal id or key id on a terminal, and where there is little room
LINE_MIN, BESIDE_CODE_MIN, NAME_MIN, COLUMN_MIN = 12, 8, 12, 3  # characters to which a column is cut
LINE_ROOM, NAME_ROOM = 24, 24  # of a line before ids and times are shortened, of a name before texts
CODE_ROOM, CODE_MIN = 40, 10  # characters of code in a line: for which others are left out, and at least
WHOLE = ("code", "name")  # kinds that go on in the next line
STATES = {  # colours that repeat what the word says
    **dict.fromkeys(("new", "active", "registered", "pass", "success"), "green"),
    **dict.fromkeys(("changed", "archived", "unchecked", "skipped", "pending", "in_progress"), "yellow"),
    **dict.fromkeys(("removed", "deleted", "revoked", "fail", "failure", "timed_out"), "red"),
}


class Column(msgspec.Struct, frozen=True):
    """One field of a list or record. `get` computes the field's value from a record. If `get` is None, the
    value is the record's member `name`.

    `kind` says how the value is formatted for people. Values of the kind `name` are never cut, because users
    copy them into other commands. On a narrow terminal, columns with the highest number `spare` are dropped
    first. A column with 0 is never dropped."""

    name: str
    get: Callable[[Record], Any] | None = None
    kind: Literal["text", "time", "size", "id", "line", "state", "code", "name"] = "text"
    spare: int = 0

    @property
    def header(self) -> str:
        name = self.name.removesuffix("_at") if self.kind == "time" else self.name
        return name.upper().replace("_", " ")

    def value(self, record: Record) -> Any:
        return self.get(record) if self.get else record.get(self.name)


def plain(value: Any) -> str:
    """Return the value as text for programs, without tabs and line breaks. A struct or dict is returned as
    JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        if value and isinstance(value[0], dict):
            return terminal_safe(msgspec.json.encode(value).decode())
        return ",".join(plain(item) for item in value)
    if isinstance(value, dict):
        return terminal_safe(msgspec.json.encode(value).decode())
    return terminal_safe(str(value))


def human(value: Any, kind: str, now: datetime) -> str:
    """Return the value as text for a person, formatted by the `kind` of its column. A time is shown as an
    age, a size with its unit, an id shortened, and a line only up to the first line break. A value of the
    kind `code` keeps its indentation."""
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
    if kind == "code":
        return terminal_safe(str(value or "").expandtabs(8))
    return text


def tsv(records: Iterable[Record], columns: Sequence[Column]) -> Iterator[str]:
    """Yields one line for each record: the values of its columns, separated by tabs."""
    for record in records:
        yield "\t".join(plain(column.value(record)) for column in columns)


def align_rows(
    records: Iterable[Record],
    columns: Sequence[Column],
    width: int,
    now: datetime,
    tint: Callable[[str, str], str] = lambda text, _colour: text,
    left_out: Callable[[list[str]], None] = lambda _headers: None,
) -> Iterator[str]:
    """Yields a header and the lines of each record, fitted into `width` characters. To make them fit, ids and
    times are shortened, texts are cut, and columns that may be dropped (`Column.spare`) are dropped. Values
    of the kinds `code` and `name` are never cut but continue on the next line. A column that is empty in
    every record is dropped, too.

    `left_out` is called with the headers of the columns that were dropped for lack of space. `tint(text,
    colour)` returns a text in a colour."""
    all_records = list(records)
    rows = [[human(column.value(record), column.kind, now) for column in columns] for record in all_records]
    filled = [at for at in range(len(columns)) if not rows or any(row[at] for row in rows)]
    table = _Table([columns[at] for at in filled], [[row[at] for at in filled] for row in rows], width)
    gone = table.fit()
    if gone:
        left_out(gone)
    headers = [column.header for column in table.columns]
    yield "  ".join(map(_fit, headers, table.widths)).rstrip()
    for row in table.rows:
        yield from table.lines(row, tint)


class _Table:
    """A table of texts that can be fitted into a width."""

    def __init__(self, columns: list[Column], rows: list[list[str]], width: int) -> None:
        self.columns, self.rows, self._width = columns, rows, width
        self.widths: list[int] = []
        self._measure()

    def fit(self) -> list[str]:
        """Make the columns narrower, and drop columns if needed, until the table fits. Columns with the
        highest number `spare` are dropped first. Returns the headers of the dropped columns."""
        self._cut("line", LINE_ROOM)
        if self._excess_width():
            self._shorten()
        if self._code():
            self._cut("text", BESIDE_CODE_MIN)
        gone: list[str] = []
        while self._is_crowded() and (spare := max(column.spare for column in self.columns)):
            gone.append(self._leave_out(spare))
        least = BESIDE_CODE_MIN if self._code() else COLUMN_MIN
        rest = ("line", "state", "id", "size", "time", "text", "name")
        for kinds, narrow in (
            (("name",), NAME_ROOM),
            (("text",), least),
            (("name",), NAME_MIN),
            (rest, least),
        ):
            while (
                self._excess_width()
                and (widest := max(self._columns_of_kinds(kinds), default=(0, 0)))[0] > narrow
            ):
                self.widths[widest[1]] -= 1
        for at in self._code():
            self.widths[at] = max(self.widths[at] - self._excess_width(), CODE_MIN)
        return gone

    def lines(self, row: list[str], tint: Callable[[str, str], str]) -> Iterator[str]:
        """Yields the line of one record. If a value of the kind `code` or `name` is longer than its column is
        wide, further lines follow."""
        parts = zip(row, self.widths, self.columns, strict=True)
        pieces = [_pieces(text, wide) if each.kind in WHOLE else [text] for text, wide, each in parts]
        for number in range(max(map(len, pieces))):
            texts = [each[number] if number < len(each) else "" for each in pieces]
            fitted = map(_fit, texts, self.widths)
            yield "  ".join(
                tint(text, STATES.get(text.strip(), "")) if column.kind == "state" else text
                for text, column in zip(fitted, self.columns, strict=True)
            ).rstrip()

    def _measure(self) -> None:
        headers = [column.header for column in self.columns]
        self.widths = [max(cells(text) for text in texts) for texts in zip(headers, *self.rows, strict=True)]

    def _excess_width(self) -> int:
        """Return the number of characters by which the table is too wide; 0 if it fits."""
        return max(sum(self.widths) + 2 * (len(self.widths) - 1) - self._width, 0)

    def _is_crowded(self) -> bool:
        """Return whether a column must be dropped because the table is too wide. A table with a column of the
        kind `code` may also narrow that column first, but not to less than CODE_ROOM characters."""
        over, code = self._excess_width(), self._code()
        return over > 0 and (not code or any(self.widths[at] - over < CODE_ROOM for at in code))

    def _leave_out(self, spare: int) -> str:
        """Drop the first column with this `spare` number. Returns its header."""
        at = next(at for at, column in enumerate(self.columns) if column.spare == spare)
        header = self.columns.pop(at).header
        for row in self.rows:
            del row[at]
        self._measure()
        self._cut("text" if self._code() else "line", BESIDE_CODE_MIN if self._code() else LINE_MIN)
        return header

    def _cut(self, kind: str, least: int) -> None:
        """Narrow the columns of this kind until the table fits. No column gets narrower than `least`
        characters."""
        for at, column in enumerate(self.columns):
            if column.kind == kind:
                self.widths[at] = max(self.widths[at] - self._excess_width(), min(self.widths[at], least))

    def _shorten(self) -> None:
        """Shorten ids, cut long lines, and reduce times to a number and a unit."""
        for at, column in enumerate(self.columns):
            for row in self.rows:
                if column.kind == "id":
                    row[at] = row[at][:ID_CHARS_NARROW]
                elif column.kind == "time":
                    row[at] = row[at].removesuffix(" ago").removeprefix("just ")
        self._measure()
        self._cut("line", LINE_MIN)

    def _code(self) -> list[int]:
        """Return the positions of the columns that show code (the kind `code`)."""
        return [at for at, column in enumerate(self.columns) if column.kind == "code"]

    def _columns_of_kinds(self, kinds: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """(width, index) of each column of these kinds."""
        return ((self.widths[at], at) for at, column in enumerate(self.columns) if column.kind in kinds)


def list_fields(record: Record, columns: Sequence[Column], now: datetime) -> Iterator[str]:
    """Yields the lines that show one record, one line for each field that has a value."""
    names = [column.name.replace("_", " ") for column in columns]
    wide = max(map(len, names))
    for name, column in zip(names, columns, strict=True):
        text = human(column.value(record), column.kind, now)
        if text:
            yield f"{name:<{wide}}  {text}"


def cells(text: str) -> int:
    """Return the width of the text in terminal columns."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def age(text: str, now: datetime) -> str:
    """Format an RFC 3339 time as an age, such as `2 h ago`. A time far from `now` becomes a date. A text that
    is not a time is returned unchanged."""
    try:
        moment = datetime.fromisoformat(text)
        seconds = (now - moment).total_seconds()
    except (ValueError, TypeError):
        return text
    ahead, seconds = seconds < 0, abs(seconds)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= length:
            count = int(seconds // length)
            if unit == "d" and count > 30:
                return moment.astimezone(UTC).strftime("%Y-%m-%d")
            distance = f"{count} {unit}"
            return f"in {distance}" if ahead else f"{distance} ago"
    return "soon" if ahead and seconds > 5 else "just now"


def size(count: float) -> str:
    """Format a number of bytes in binary units, such as `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    raise AssertionError("the last unit takes everything")


def _pieces(text: str, width: int) -> list[str]:
    """Split the text into pieces of at most `width` terminal columns."""
    pieces, piece, wide = [], "", 0
    for char in text:
        more = cells(char)
        if piece and wide + more > width:
            pieces.append(piece)
            piece, wide = "", 0
        piece, wide = piece + char, wide + more
    return [*pieces, piece]


def _fit(text: str, width: int) -> str:
    missing = width - cells(text)
    if missing >= 0:
        return text + " " * missing
    start = ""
    for char in text:
        if cells(start + char) > width - 1:
            break
        start += char
    return start + "…" + " " * (width - 1 - cells(start))
