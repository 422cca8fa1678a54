"""Text in columns: makes text from strangers safe, cuts it to a width, wraps it, and lays out parts.

A `Part` is (text, role). The theme gives each role a colour. Text from other people goes through `safe`
first."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import accumulate, count
from operator import add

from rich.cells import cell_len, chop_cells, set_cell_size

from localstore.core.paths import terminal_safe
from svc.console.table import age

Part = tuple[str, str]
TAB = 4  # columns of a tab
CUT = "…"
HIDDEN = "‹"  # at the left of a row that is scrolled sideways
PART_LEAST = 12  # columns that are left of a part of a row when its middle is cut, at least
WINDOW = 64 * 1024  # characters of a text that are split into lines at once


def safe(text: str) -> str:
    """Returns a text as one line that cannot control the terminal. Control characters and bidirectional
    characters are escaped."""
    return terminal_safe(text.replace("\t", " " * TAB).replace("\n", " "), keep="\u200d\u200c")


def starts(text: str) -> array[int]:
    """Returns the positions at which the lines of a text begin. After a final line break there is one more
    line, which is empty."""
    positions = array("I")
    for begins, lines in windows(text):
        positions.append(begins)
        positions.extend(map(add, accumulate(map(len, lines[:-1])), count(begins + 1)))
    return positions


def windows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yields a text in pieces, as (position of the piece, its lines). A piece has about WINDOW characters and
    ends at a line break. All lines of a long text at once would need three times as much memory as the
    text."""
    begins = 0
    while begins <= len(text):
        end = text.find("\n", begins + WINDOW)
        if end < 0:
            end = len(text)
        yield begins, text[begins:end].split("\n")
        begins = end + 1


def line_at(text: str, begins: int) -> str:
    """Returns the line that begins at the position `begins`, without its line break."""
    end = text.find("\n", begins)
    return text[begins:] if end < 0 else text[begins:end]


def ago(text: str, now: float) -> str:
    """Returns an RFC 3339 time as an age, such as `2 h ago`. `now`: the present time in seconds since 1970. A
    text that is no time is returned escaped."""
    return safe(age(text, datetime.fromtimestamp(now, UTC))) if text else ""


def ago_seconds(at: float, now: float) -> str:
    """Returns a time as an age, such as `2 h ago`. Both times are in seconds since 1970."""
    return ago(datetime.fromtimestamp(at, UTC).isoformat(), now)


def lasting(text: str, now: float) -> str:
    """Returns how long something is so since an RFC 3339 time, such as `for 2 h`. What has just begun is so
    `for less than a minute`, and after a month it is `since 2026-05-12`."""
    words = ago(text, now)
    if words == "just now":
        return "for less than a minute"
    return f"for {words.removesuffix(' ago')}" if words.endswith(" ago") else f"since {words}"


def brief(text: str, now: float) -> str:
    """Returns an RFC 3339 time as an age in short form, such as `2h`, `23m` or `now`, for narrow rows."""
    words = ago(text, now).removesuffix(" ago").replace("just now", "now")
    return words.replace(" min", "m").replace(" h", "h").replace(" d", "d")


def wrap(text: str, width: int) -> list[str]:
    """Returns the rows of a text of several lines, escaped. Lines wider than `width` cells are wrapped
    between words. The continuation of a wrapped line begins below its first word."""
    return [row for line in text.replace("\r\n", "\n").rstrip("\n").split("\n") for row in hang(line, width)]


def hang(line: str, width: int) -> list[str]:
    """Returns the rows of one line, escaped. If the line is wider than `width` cells, it is wrapped, and its
    continuation begins below its first word."""
    line = safe(line)
    if cell_len(line) <= width:
        return [line]
    start = line.lstrip(" ")
    indent = " " * min(len(line) - len(start), width // 2)
    return [indent + row for row in _broken(start, width - len(indent))]


def _broken(line: str, width: int) -> list[str]:
    """Wraps a line without indentation between words. Returns rows of at most `width` cells."""
    rows: list[str] = []
    row = ""
    for word in line.split(" "):
        if row and cell_len(row) + 1 + cell_len(word) > width:
            rows.append(row)
            row = ""
        row = f"{row} {word}" if row else word
        if cell_len(row) > width:
            *whole, row = chop_cells(row, width)
            rows += whole
    return [*rows, row]


def fold(parts: Sequence[Part], width: int) -> list[tuple[Part, ...]]:
    """Wraps one line of parts between words. Returns rows of at most `width` columns."""
    text = "".join(words for words, _ in parts)
    if cell_len(text) <= width:
        return [tuple(parts)]
    begins, used = [0], 0
    for word in re.finditer(r"^\s*\S+\s*|\S+\s*", text):
        if used and used + cell_len(word[0].rstrip()) > width:
            begins.append(word.start())
            used = 0
        used += cell_len(word[0])
        if used > width and cell_len(word[0].rstrip()) > width:  # it is wider than a row by itself
            *whole, rest = chop_cells(word[0].rstrip(), width)
            begins += [begins[-1] + sum(map(len, whole[: place + 1])) for place in range(len(whole))]
            used = cell_len(rest) + len(word[0]) - len(word[0].rstrip())
    return [_between(parts, start, end) for start, end in zip(begins, [*begins[1:], len(text)], strict=True)]


def fold_after(sign: Sequence[Part], parts: Sequence[Part], width: int) -> list[tuple[Part, ...]]:
    """Wraps one line of parts that follows a sign. Returns rows of at most `width` columns. The first one
    begins with the sign, and the words of the others are below its words."""
    indent = sum(cell_len(text) for text, _ in sign)
    first, *rest = fold(parts, max(8, width - indent))
    return [(*sign, *first), *(((" " * indent, "text"), *row) for row in rest)]


def _between(parts: Sequence[Part], start: int, end: int) -> tuple[Part, ...]:
    inside: list[Part] = []
    at = 0
    for words, role in parts:
        if words_inside := words[max(0, start - at) : max(0, end - at)]:
            inside.append((words_inside, role))
        at += len(words)
    return tuple(inside)


def fit(parts: Iterable[Part], width: int) -> list[Part]:
    """Returns the parts, cut to `width` columns. An ellipsis stands in place of the text that was cut off. If
    only blanks were cut off, there is no ellipsis, because a row that was wrapped ends with a blank."""
    fitting: list[Part] = []
    room = width
    parts = list(parts)
    for place, (text, role) in enumerate(parts):
        size = cell_len(text)
        if size <= room:
            fitting.append((text, role))
            room -= size
            continue
        words = text.rstrip(" ")
        if cell_len(words) <= room and not any(later.strip(" ") for later, _ in parts[place + 1 :]):
            fitting.append((words, role))
            break
        if room > 0:
            fitting.append((set_cell_size(text, room - 1) + CUT, role))
        elif fitting:
            last, its_role = fitting[-1]
            fitting[-1] = (set_cell_size(last, max(0, cell_len(last) - 1)) + CUT, its_role)
        break
    return fitting


def cut_middle(text: str, width: int) -> str:
    """Returns a text of one line with an ellipsis in place of its middle, if it is wider than `width`
    columns. Names often differ at their end, so the end stays."""
    cells = cell_len(text)
    if cells <= width or width < 3:
        return "".join(words for words, _ in fit(((text, ""),), width))
    end = width - width // 2
    tail = "".join(words for words, _ in skip(((text, ""),), cells - end))
    return f"{set_cell_size(text, width - 1 - end)}{CUT}{tail}"


def cut_middle_of_part(
    left: Sequence[Part], place: int, right: Sequence[Part], width: int
) -> tuple[Part, ...]:
    """Returns the parts `left` of a row, so that they fit into `width` columns beside the parts `right`. If
    they do not, the middle of the part with the index `place` is cut, but PART_LEAST columns of it stay."""
    taken = sum(cell_len(text) for text, _ in (*left, *right)) + bool(right)
    if taken <= width:
        return tuple(left)
    text, role = left[place]
    room = max(PART_LEAST, cell_len(text) - (taken - width))
    return (*left[:place], (cut_middle(text, room), role), *left[place + 1 :])


def skip(parts: Sequence[Part], width: int) -> list[Part]:
    """Returns the parts without their first `width` columns. A wide character at the edge becomes a blank."""
    rest: list[Part] = []
    for text, role in parts:
        cells = cell_len(text)
        if width >= cells:
            width -= cells
            continue
        while width > 0:
            width -= cell_len(text[0])
            text = " " * -min(width, 0) + text[1:]
        rest.append((text, role))
        width = 0
    return rest


def slide(parts: Sequence[Part], width: int) -> list[Part]:
    """Returns the parts without their first `width` columns. If anything but blanks is left out, a sign at
    the beginning says so."""
    rest = skip(parts, width)
    hidden = "".join(text for text, _ in parts)
    if not width or not set_cell_size(hidden, width).strip():
        return rest
    role = next((role for text, role in rest if text), "text")
    return [(HIDDEN, role), *skip(rest, 1)]


def columns(left: Sequence[Part], right: Sequence[Part], width: int) -> list[Part]:
    """Returns a row that begins with the parts `left` and ends with the parts `right`. If both do not fit
    into `width` columns, `left` is cut."""
    tail = sum(cell_len(text) for text, _ in right)
    if not right or tail + 8 > width:
        return fit([*left, *((("  ", "text"), *right) if right else ())], width)
    head = fit(left, width - tail - 1)
    gap = width - tail - sum(cell_len(text) for text, _ in head)
    return [*head, (" " * gap, "text"), *right]


def lines_of(text: str) -> list[str]:
    """Returns the lines of a text, without line breaks. A final line break does not begin another line."""
    lines = text.split("\n")
    return lines[:-1] if len(lines) > 1 and lines[-1] == "" else lines
