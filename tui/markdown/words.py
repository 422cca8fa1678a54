"""Inline Markdown: turns the words of a paragraph into pieces, which have a role and perhaps a link, and
turns pieces into rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from markdown_it.token import Token
from rich.cells import cell_len, chop_cells

from tui.text import Part, safe

PICTURE = "▣"
BREAK = "\n"  # the text of a piece that ends the row
# A link without markup, a number, a handle, and a seal: eight digits or more, of both kinds.
_NAMED = re.compile(
    r"(?P<url>https?://[^\s<>\"'`|\\^{}\[\]]+[^\s<>\"'`|\\^{}\[\].,;:!?)])"
    r"|(?<![\w/&#@.-])(?P<number>(?:[\w.-]{1,64}/[\w.-]{1,100})?#[1-9][0-9]{0,8})(?!\w)"
    r"|(?<![\w/@.-])(?P<handle>@[a-z0-9][a-z0-9-]{0,63})(?![\w@/])"
    r"|(?<![\w/#@.-])(?P<seal>(?=[0-9]{0,63}[a-f])(?=[a-f]{0,63}[0-9])[0-9a-f]{8,64})(?!\w)",
    re.ASCII,
)
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>")
_ATTRIBUTE = re.compile(r"([a-zA-Z-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")


class Piece(NamedTuple):
    """A text with a role. `target`: where its link leads, "" if it is no link."""

    text: str
    role: str
    target: str = ""


class Row(NamedTuple):
    """One row to paint. `targets`: where the links in the row lead. There is one target for each part with
    the role `link` or `person`, in order."""

    parts: tuple[Part, ...]
    targets: tuple[str, ...] = ()


def pieces_of(tokens: Sequence[Token], breaks: bool, base: str = "text") -> list[Piece]:
    """Returns the pieces of a paragraph. `breaks`: each line break in the text begins a new row. `base`: the
    role of ordinary words."""
    pieces: list[Piece] = []
    on: list[str] = []  # roles that are switched on, the innermost last
    target = ""
    for token in tokens:
        kind = token.type
        role = "link" if target else next((strong for strong in _STRONGEST if strong in on), base)
        if kind == "text":
            pieces += [Piece(token.content, role, target)] if target else _link_names(token.content, role)
        elif kind == "code_inline":
            pieces.append(Piece(token.content, "link" if target else "code", target))
        elif kind in ("softbreak", "hardbreak"):
            pieces.append(Piece(BREAK if breaks or kind == "hardbreak" else " ", base))
        elif kind == "image":
            pieces += _picture(token.content, str(token.attrs.get("src", "")), target)
        elif kind == "link_open":
            target = str(token.attrs.get("href", ""))
        elif kind == "link_close":
            target = ""
        elif kind == "html_inline":
            pieces += _html(token.content, base)
        elif kind.endswith("_open") and kind[:-5] in _SWITCHES:
            on.append(_SWITCHES[kind[:-5]])
        elif kind.endswith("_close") and on:
            on.pop()
    return pieces


_SWITCHES = {"strong": "strong", "em": "emphasis", "s": "struck"}
_STRONGEST = ("struck", "strong", "emphasis")


def _link_names(text: str, role: str) -> list[Piece]:
    """Splits a text into pieces. Addresses, numbers such as #12, handles and seal ids become links."""
    pieces: list[Piece] = []
    at = 0
    for match in _NAMED.finditer(text):
        pieces.append(Piece(text[at : match.start()], role))
        what = "person" if match["handle"] else "link"
        kind = "seal:" if match["seal"] else "number:" if match["number"] else ""
        pieces.append(Piece(match[0], what, kind + match[0]))
        at = match.end()
    return [*pieces, Piece(text[at:], role)]


def _picture(words: str, source: str, target: str) -> list[Piece]:
    return [Piece(f"{PICTURE} {words.strip() or source or 'picture'}", "link", target or source or PICTURE)]


def _html(text: str, base: str) -> list[Piece]:
    """Returns the pieces for an HTML tag: a picture, or a row break. Returns [] for any other tag."""
    match = _TAG.fullmatch(text)
    if match is None:
        return []
    name = match[2].lower()
    if name == "br":
        return [Piece(BREAK, base)]
    if name == "img":
        given = attributes(match[3])
        return _picture(given.get("alt", ""), given.get("src", ""), "")
    return []


def attributes(text: str) -> dict[str, str]:
    """Returns the attributes of an HTML tag, by their names in lower case."""
    return {name.lower(): a or b or c for name, a, b, c in _ATTRIBUTE.findall(text)}


def tags(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yields each HTML tag of a text in order, as (text before it, "/" if it is a closing tag, name,
    attributes). The last item has the text after the last tag, and an empty name."""
    at = 0
    for match in _TAG.finditer(text):
        yield text[at : match.start()], match[1], match[2].lower(), match[3]
        at = match.end()
    yield text[at:], "", "", ""


def lay_out(pieces: Sequence[Piece], width: int) -> list[Row]:
    """Lays out pieces as rows of at most `width` cells, broken between words."""
    rows: list[Row] = []
    line: list[Piece] = []
    used = 0
    space: Piece | None = None
    for word in _words(pieces):
        if isinstance(word, str):  # the end of a row
            rows.append(row_of(line))
            line, used, space = [], 0, None
            continue
        if word[0].text == " ":
            space = word[0] if line else None
            continue
        size = sum(cell_len(piece.text) for piece in word)
        if line and used + (space is not None) + size > width:
            rows.append(row_of(line))
            line, used, space = [], 0, None
        if space is not None:
            line.append(space)
            used += 1
            space = None
        for piece in word:
            for text in chop_cells(piece.text, width) if size > width else [piece.text]:
                if used and used + cell_len(text) > width:
                    rows.append(row_of(line))
                    line, used = [], 0
                line.append(piece._replace(text=text))
                used += cell_len(text)
    return [*rows, row_of(line)] if line or not rows else rows


def row_of(pieces: Sequence[Piece]) -> Row:
    """Returns one row of these pieces. Neighbouring pieces with the same role and target are joined."""
    parts: list[Part] = []
    targets: list[str] = []
    last: Piece | None = None
    for piece in pieces:
        if last is not None and (piece.role, piece.target) == (last.role, last.target):
            parts[-1] = (parts[-1][0] + piece.text, piece.role)
        else:
            parts.append((piece.text, piece.role))
            if piece.target:
                targets.append(piece.target)
        last = piece
    return Row(tuple(parts), tuple(targets))


def on_one_line(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns the pieces escaped for the terminal, without the row breaks."""
    return [piece._replace(text=safe(piece.text)) for piece in pieces if piece.text]


def _words(pieces: Sequence[Piece]) -> Iterator[list[Piece] | str]:
    """Yields the words of the pieces, the single spaces between them, and BREAK at the end of a row. A word
    is a list of pieces, because its letters may have several roles."""
    word: list[Piece] = []
    for piece in pieces:
        if piece.text == BREAK:
            if word:
                yield word
            word = []
            yield BREAK
            continue
        for match in re.finditer(r"\s+|\S+", piece.text):
            if not match[0].isspace():
                word.append(piece._replace(text=safe(match[0])))
                continue
            if word:
                yield word
            word = []
            yield [piece._replace(text=" ")]
    if word:
        yield word
