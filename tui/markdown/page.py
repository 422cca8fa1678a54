"""Renders the blocks of a Markdown text as rows: headings, lists, quotes, code, tables, and `<details>` that
can be folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len

from tui.markdown.tables import TableCell, table
from tui.markdown.words import (
    BREAK,
    PICTURE,
    Piece,
    Row,
    attributes,
    lay_out,
    on_one_line,
    pieces_of,
    tags,
)
from tui.text import Part, lines_of, safe

WIDTH = 96  # columns of a text at most
LEAST = 16  # columns that indentation leaves
DEPTH = 24  # of quotes and lists in one another; a deeper text is not taken apart
CHARS, LINES = 128 * 1024, 4_000  # of a text that is taken apart; what follows is counted
SECONDS = 0.3  # of CPU that one text may take
DETAILS = "details:"  # begins the target of a row that folds
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HIDDEN = ("script", "style", "template")
_ENDS = frozenset({"p", "div", "br", "li", "ul", "ol", "tr", "table", "hr", *(f"h{n}" for n in range(1, 7))})

Colour = Callable[[str, str], Sequence[tuple[Part, ...]] | None]
"""The lines of a code block by its text and language; None where it stays plain."""


class MarkdownRows(NamedTuple):
    """A Markdown text rendered as rows. `lines`: for each row the number of the line of the text (from 1)
    that it shows. Inside a paragraph, which is laid out anew, the numbers are estimates."""

    rows: list[Row]
    lines: list[int]


class Taste(NamedTuple):
    """How a Markdown text is shown. `breaks`: each line break in the text begins a new row, as in comments.
    `opened`: the numbers of the `<details>` that are unfolded, None for all. `targets`: links can be
    followed. Otherwise, the address is shown after each link."""

    breaks: bool = False
    opened: Collection[int] | None = None
    targets: bool = False


READ = Taste()


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True, "maxNesting": DEPTH}).enable(["table", "strikethrough"])


def plain_colour(text: str, language: str) -> None:
    """Colours nothing. It stands in for a function that colours source text."""


def render_markdown(
    text: str, width: int, taste: Taste = READ, colour: Colour = plain_colour
) -> MarkdownRows | None:
    """Renders a Markdown text as rows of at most `width` columns, and never more than WIDTH (a constant).
    Returns None if the text is nested too deeply. `taste`: how it is shown. `colour`: the function that
    colours code. A text can take long to render: see `tui.slices`."""
    source, rest = _cut_long(text.replace("\r\n", "\n"))
    tokens = _parser().parse(source)
    if any(token.level >= DEPTH - 1 for token in tokens):
        return None
    writer = _Writer(max(LEAST, min(width, WIDTH)), taste, colour)
    writer.blocks(tokens)
    if rest:
        writer.gap()
        writer.put([Piece(f"… {rest:,} more characters", "dim")])
    return MarkdownRows(writer.rows, writer.lines)


def _cut_long(text: str) -> tuple[str, int]:
    """Cuts a text that is too long to be parsed. Returns the beginning to parse, and the number of characters
    that are left out."""
    end = len(text) if len(text) <= CHARS else (text.rfind("\n", 0, CHARS) + 1 or CHARS)
    lines = text[:end].split("\n", LINES)
    if len(lines) > LINES:
        end -= len(lines[-1])
    return text[:end], len(text) - end


class _Mark:
    """The text before the rows of a quote or a list item. `once`: the text before the first row, such as the
    bullet of an item. `then`: the text before the following rows."""

    def __init__(self, once: str, then: str, role: str) -> None:
        self.once, self.then, self.role = once, then, role
        self.used = False

    def take(self) -> Part:
        before, self.used = self.used, True
        return (self.then if before else self.once, self.role if not before or self.then.strip() else "text")


class _Writer:
    def __init__(self, width: int, taste: Taste, colour: Colour) -> None:
        self.rows: list[Row] = []
        self.lines: list[int] = []  # the line of the text that each row shows
        self._block_lines = range(1)  # those of the block that is rendered
        self._width, self._taste, self._colour = width, taste, colour
        self._marks: list[_Mark] = []
        self._lists: list[int | None] = []  # the next number of each list, None of a bulleted one
        self._details = 0  # those that began
        self._folded: list[bool] = []  # of the details that are open in the text

    # --- rows

    def put(self, pieces: Sequence[Piece]) -> None:
        """Add the rows of a paragraph."""
        self.put_rows(lay_out(pieces, self.room))

    def put_rows(self, rows: Sequence[Row]) -> None:
        if any(self._folded):
            return
        first, count = self._block_lines.start, len(self._block_lines)
        for place, row in enumerate(rows):
            lead = [mark.take() for mark in self._marks]
            self.rows.append(Row((*lead, *row.parts), row.targets))
            self.lines.append(first + place * count // len(rows) + 1)

    def gap(self) -> None:
        """Add an empty row, unless the last one is empty."""
        if self.rows and not any(self._folded) and not any(not mark.used for mark in self._marks):
            quoted = [mark.take() for mark in self._marks if mark.then.strip()]
            last = self.rows[-1].parts
            if "".join(text for text, _ in last).strip(" ▎"):
                self.rows.append(Row(tuple(quoted)))
                self.lines.append(self.lines[-1])

    @property
    def room(self) -> int:
        """The number of columns that are left for text, beside the signs of quotes and list items."""
        return max(LEAST, self._width - sum(cell_len(mark.then) for mark in self._marks))

    # --- blocks

    def blocks(self, tokens: Sequence[Token]) -> None:
        at = 0
        while at < len(tokens):
            token = tokens[at]
            kind = token.type
            if token.map is not None:
                self._block_lines = range(*token.map)
            if kind == "table_open":
                end = next(place for place in range(at, len(tokens)) if tokens[place].type == "table_close")
                self.gap()
                self.put_rows(table(self._cells(tokens[at:end]), self.room))
                at = end
            elif kind == "heading_open":
                self._heading(token, tokens[at + 1])
                at += 2
            elif kind == "paragraph_open":
                self._paragraph(tokens[at + 1], tight=token.hidden)
                at += 2
            else:
                self._block(token)
            at += 1

    def _block(self, token: Token) -> None:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            if not self._lists:
                self.gap()
            self._lists.append(int(token.attrs.get("start", 1)) if kind[0] == "o" else None)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self._lists.pop()
        elif kind == "list_item_open":
            self._item()
        elif kind == "blockquote_open":
            self.gap()
            self._marks.append(_Mark("▎ ", "▎ ", "quote"))
        elif kind in ("list_item_close", "blockquote_close"):
            if not self._marks[-1].used:
                self.put_rows([Row(())])  # an item without a text
            self._marks.pop()
        elif kind in ("fence", "code_block"):
            self._code(token)
        elif kind == "hr":
            self.gap()
            self.put_rows([Row((("─" * self.room, "dim"),))])
        elif kind == "html_block":
            self._html(token.content)

    def _item(self) -> None:
        number = self._lists[-1]
        sign = "• " if number is None else f"{number}. "
        if number is not None:
            self._lists[-1] = number + 1
        self._marks.append(_Mark(sign, " " * len(sign), "accent"))

    def _paragraph(self, inline: Token, *, tight: bool) -> None:
        pieces = pieces_of(inline.children or [], self._taste.breaks)
        if not tight:
            self.gap()
        mark = self._marks[-1] if self._marks else None
        task = _TASK.match(pieces[0].text) if mark is not None and not mark.used and pieces else None
        if mark is not None and task is not None:
            mark.once = "☐ " if task[1] == " " else "☑ "
            pieces[0] = pieces[0]._replace(text=pieces[0].text[task.end() :].lstrip())
        self.put(self._with_addresses(pieces))

    def _heading(self, token: Token, inline: Token) -> None:
        self.gap()
        role = "heading" if token.tag in ("h1", "h2") else "strong"
        self.put(pieces_of(inline.children or [], False, role))
        if token.tag == "h1":
            longest = max((_cells(row) for row in self.rows[-1:]), default=0)
            self.put_rows([Row((("─" * min(self.room, max(longest, 3)), "dim"),))])

    def _code(self, token: Token) -> None:
        text, language = token.content, token.info.strip().partition(" ")[0]
        lines = lines_of(text) if text else []
        rows = self._colour(text, language) if language else None
        if rows is None or len(rows) != len(lines):
            rows = [((safe(line), "code_text"),) for line in lines]
        self.gap()
        begins = self._block_lines.start + (token.type == "fence")
        self._block_lines = range(begins, begins + len(rows))
        self.put_rows([Row((("│ ", "gutter"), *parts)) for parts in rows])

    def _cells(self, tokens: Sequence[Token]) -> list[list[TableCell]]:
        rows: list[list[TableCell]] = []
        for at, token in enumerate(tokens):
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                style = str(token.attrs.get("style", ""))
                base = "strong" if token.type == "th_open" else "text"
                pieces = on_one_line(pieces_of(tokens[at + 1].children or [], False, base))
                rows[-1].append(TableCell(pieces, style.rpartition(":")[2] or "left"))
        return rows

    def _with_addresses(self, pieces: list[Piece]) -> list[Piece]:
        """Returns the pieces of a paragraph. If links cannot be followed, the address follows each link."""
        if not self._taste.targets:
            return pieces
        spelled: list[Piece] = []
        for at, piece in enumerate(pieces):
            spelled.append(piece)
            ends = at + 1 == len(pieces) or pieces[at + 1].target != piece.target
            if piece.role == "link" and ends and _is_address(piece.target) and piece.text != piece.target:
                spelled.append(Piece(f" ({piece.target})", "dim"))
        return spelled

    # --- HTML

    def _html(self, text: str) -> None:
        """Add a block of HTML. Its pictures and its text are shown. So are its `<details>`, which the user
        can fold and unfold."""
        line: list[Piece] = []
        hidden = summary = False
        for before, closes, name, given in tags(_COMMENT.sub("", text)):
            if not hidden:
                line += _text_of(before)
            if name in _HIDDEN:
                hidden = not closes
            elif name == "img":
                given_attributes = attributes(given)
                words = given_attributes.get("alt", "") or given_attributes.get("src", "") or "picture"
                line.append(Piece(f"{PICTURE} {words}", "link", given_attributes.get("src", "") or PICTURE))
            elif name == "summary" and closes:
                self._summary(line)
                line, summary = [], False
            elif name in ("details", "summary") or name in _ENDS:
                self._flush(line)
                line = []
                summary = name == "summary"
                if name == "details":
                    self._fold(closes=bool(closes))
        if summary:
            self._summary(line)
        else:
            self._flush(line)

    def _flush(self, line: list[Piece]) -> None:
        if any(piece.text.strip() for piece in line):
            self.gap()
            self.put(self._with_addresses(line))

    def _fold(self, *, closes: bool) -> None:
        if closes and self._folded:
            self._folded.pop()
        elif not closes:
            self._folded.append(False)
            self._details += 1

    def _summary(self, line: list[Piece]) -> None:
        if not self._folded:
            self._flush(line)
            return
        number = self._details - 1
        opened = self._taste.opened is None or number in self._taste.opened
        words = " ".join(safe(piece.text) for piece in line if piece.text != BREAK).split()
        self.gap()
        heading = f"{'▾' if opened else '▸'} {' '.join(words) or 'details'}"
        self.put([Piece(heading, "link", f"{DETAILS}{number}")])
        self._folded[-1] = not opened


def _text_of(html: str) -> list[Piece]:
    from html import unescape

    words = unescape(html)
    return [Piece(words, "text")] if words.strip() or words == " " else []


def _cells(row: Row) -> int:
    return sum(cell_len(text) for text, _ in row.parts)


def _is_address(target: str) -> bool:
    return target.startswith(("https://", "http://", "mailto:"))
