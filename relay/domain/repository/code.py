"""Data of the pages that show files: a folder, a file, the history of a path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import ClassVar, Literal, cast
from urllib.parse import quote

from localstore.core.errors import Invalid, NotFound, PathInvalid
from localstore.core.model.history import SealSummary
from localstore.core.model.limits import BLOB_INLINE
from localstore.core.model.ref import Ref
from localstore.core.tree.directory import Child, join
from relay.db.paging import Cursor
from relay.domain.history import files, history, sealed
from relay.domain.repository import ref as refs
from relay.domain.repository.place import ShownRepository
from relay.render.jobs import SOURCE_BYTES, SOURCE_LINES
from relay.render.plain import count_lines, number_lines, part_of, with_plain_breaks

BRANCHES = 100  # that the choice of a branch offers
SEALS = 30  # of a page of history
FOLDER_ROWS = 1000  # of a page of a folder
PAGE_LINES, PAGE_CHARS = SOURCE_LINES, SOURCE_BYTES  # of a page of a file; what is coloured has one page
ABOVE = 10  # lines above a marked one, where a page begins with them
READMES = ("readme.md", "readme", "readme.txt", "readme.rst")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif")
MARKDOWN = (".md", ".markdown")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.~-]+").fullmatch  # the same in HTML and in an address
_LINES = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")

Shape = Literal["text", "markdown", "picture", "bytes"]


@dataclass(slots=True)
class Position:
    """The file or folder that a page shows. `at`: its branch, tag or seal, as the address has it. `seal`: the
    seal that `at` means now."""

    place: ShownRepository
    at: str
    seal: str
    path: str
    refs: list[Ref] = field(default_factory=list)

    @property
    def crumbs(self) -> list[tuple[str, str]]:
        """The parts of the path, each with the address of the folder or file up to there."""
        parts = self.path.split("/") if self.path else []
        paths = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        return [(part, self.place.code(self.at, path)) for part, path in zip(parts, paths, strict=True)]

    @property
    def is_permanent(self) -> bool:
        """Whether the address contains a seal id, so that the page never changes."""
        return self.at == self.seal


class PagedLines:
    """A page of the lines of a file, with the cursors of the pages before and after it. `lines`: the lines of
    the page. `first`: the number of the first of them. `count`: the number of lines of the file."""

    __slots__ = ()
    PAGE: ClassVar[int]  # lines of a page
    lines: list[str]
    first: int
    count: int

    @property
    def last(self) -> int:
        """The number of the last line that is shown."""
        return self.first + len(self.lines) - 1

    @property
    def earlier(self) -> str | None:
        """The cursor of the previous page. None if this is the first page."""
        return Cursor.write(max(self.first - self.PAGE, 1)) if self.first > 1 else None

    @property
    def later(self) -> str | None:
        """The cursor of the next page. None if this is the last page."""
        return Cursor.write(self.last + 1) if self.last < self.count else None


@dataclass(slots=True)
class ShownFile(PagedLines):
    """A file as a page shows it. `lines`: the lines of a text as HTML, beginning with line `first`. `count`:
    the number of lines of the whole text. `whole`: False if the page has only one line, and that line is cut.
    `html`: rendered Markdown. For a file that is neither text nor Markdown, `lines` and `html` are empty."""

    PAGE: ClassVar[int] = PAGE_LINES
    name: str
    size: int
    digest: str
    shape: Shape
    lines: list[str] = field(default_factory=list)
    html: str = ""
    marked: range = range(0)
    first: int = 1
    count: int = 0
    whole: bool = True

    @property
    def rows(self) -> str:
        """The lines as HTML, with their numbers."""
        return number_lines(self.lines, self.marked, self.first)


async def find_position(place: ShownRepository, at: str | None, path: str) -> Position | None:
    """Find the file or folder at `path` in `at`, which is a branch, tag or seal. Returns None for a
    repository or branch without seals. Raises NotFound."""
    name = at or place.repo.default_branch
    async with place.view.read(near=True) as tx:
        seal = await sealed.find_head(place.view, tx, name)
    if seal is None:
        return None
    branches = await refs.page(place.view, None, None, BRANCHES)
    return Position(place, name, seal, path.strip("/"), list(branches.items))


async def folder(position: Position) -> list[Child]:
    """The entries of a folder, folders first. Raises NotFound if there is no folder at the path."""
    try:
        entries = await files.list_directory(position.place.view, position.seal, position.path)
    except PathInvalid:
        raise NotFound from None
    return sorted(entries, key=_is_file)


def _is_file(entry: Child) -> bool:
    return entry.kind != "dir"


def folder_rows(position: Position, entries: list[Child]) -> str:
    """The rows of a folder as HTML. Made without a template, and as short as HTML allows, because a page has
    a thousand of them."""
    place = position.place
    address = place.code(position.at, f"{position.path}/x" if position.path else "x")
    start = escape(address[len(place.dev) : -1])  # a link from this page
    rows = []
    for entry in entries:
        name = entry.name
        is_plain = _PLAIN_NAME(name) is not None
        label, target = (name, name) if is_plain else (escape(name), quote(name))
        if entry.kind == "dir":
            rows.append(f'<tr class=dir><td><a href="{start}{target}">{label}/</a><td>')
        else:
            rows.append(f'<tr><td><a href="{start}{target}">{label}</a><td>{size_of(entry.size)}')
    return "\n".join(rows)


def folder_page(entries: list[Child], cursor: str | None) -> tuple[list[Child], str | None]:
    """Take a page of the entries of a folder. Returns (entries, cursor), with the cursor of the next page."""
    (first,) = cast("tuple[int]", Cursor.read(cursor, 0))
    if first < 0:
        raise Invalid(history.WRONG_CURSOR, pointer="/cursor")
    end = first + FOLDER_ROWS
    return entries[first:end], Cursor.write(end) if end < len(entries) else None


async def readme(position: Position, entries: list[Child]) -> ShownFile | None:
    """The README among `entries`, the entries of the position's folder, rendered. None if there is no README
    that can be shown."""
    by_name = {
        name: entry.name
        for entry in entries
        if (name := entry.name.lower()) in READMES and entry.kind == "text"
    }
    best = next((by_name[name] for name in READMES if name in by_name), None)
    return None if best is None else await file(position, join(position.path, best))


async def file(
    position: Position, path: str, plain: bool = False, lines: str = "", cursor: str | None = None
) -> ShownFile:
    """A file at the seal, as a page shows it. `plain`: show the source of Markdown too. `lines`: the lines to
    mark, as N or N-M. `cursor`: which page of the lines to show. Raises NotFound, or Invalid for a cursor of
    another file."""
    try:
        blob = await files.blob(position.place.view, position.seal, path)
    except PathInvalid:
        raise NotFound from None
    name = path.rpartition("/")[2]
    answer = ShownFile(name, blob.size, blob.blake3, "bytes")
    if blob.kind != "text":
        if name.lower().endswith(PICTURES) and blob.size <= BLOB_INLINE:
            answer.shape = "picture"
        return answer
    if blob.content is None:
        return answer
    renderer = position.place.view.node.renderer
    if name.lower().endswith(MARKDOWN) and not plain:
        html = await renderer.markdown(
            blob.content, position.place.links(position.seal, path.rpartition("/")[0])
        )
        if html is not None:
            answer.shape, answer.html = "markdown", html
            return answer
    answer.shape = "text"
    coloured = await renderer.source(blob.content, name)
    if coloured is None:
        _put_part(answer, with_plain_breaks(blob.content), lines, cursor)
    else:
        answer.lines, answer.count = coloured, len(coloured)
        answer.marked = parse_marked_lines(lines, answer.count)
    return answer


def _put_part(file: ShownFile, text: str, lines: str, cursor: str | None) -> None:
    """Choose the lines of a plain text (without colours) that this page shows, and put them into `file`.
    Without a cursor, a text of several pages begins shortly above the marked lines."""
    file.count = count_lines(text)
    file.marked = parse_marked_lines(lines, file.count)
    first = line_of(cursor)
    if cursor is None and file.marked and (file.count > PAGE_LINES or len(text) > PAGE_CHARS):
        first = max(file.marked.start - ABOVE, 1)
    part = part_of(text, first, PAGE_LINES, PAGE_CHARS)
    if part is None:
        raise Invalid(history.WRONG_CURSOR, pointer="/cursor")
    file.lines, file.first, file.whole = part.lines, part.first, part.whole


def line_of(cursor: str | None) -> int:
    """The number of the first line of the page that the cursor names. Raises Invalid."""
    (first,) = cast("tuple[int]", Cursor.read(cursor, 1))
    if first < 1:
        raise Invalid(history.WRONG_CURSOR, pointer="/cursor")
    return first


def parse_marked_lines(lines: str, count: int) -> range:
    """The line numbers that `lines` names as `N` or `N-M`, limited to 1 to `count`. Empty if `lines` is
    neither."""
    match = _LINES.fullmatch(lines)
    if match is None:
        return range(0)
    first, last = sorted((int(match[1]), int(match[2] or match[1])))
    return range(max(first, 1), min(last, count) + 1)


@dataclass(slots=True)
class Journey:
    """The data of the time-travel page, which shows a path as it was at one seal. `stops`: seals that changed
    the path, newest first. `chosen`: the index in `stops` of the seal whose files are shown. `cursor`: the
    cursor of older seals."""

    stops: list[SealSummary]
    chosen: int
    cursor: str | None

    @property
    def newer(self) -> SealSummary | None:
        return self.stops[self.chosen - 1] if self.chosen else None

    @property
    def older(self) -> SealSummary | None:
        return self.stops[self.chosen + 1] if self.chosen + 1 < len(self.stops) else None


async def page_of_history(position: Position, cursor: str | None, seal: str) -> Journey:
    """Find the data of the time-travel page, which shows the position's path as it was at `seal`. `cursor`:
    the page of the path's history that has this seal. If `seal` is "", the newest seal of that page is taken.
    Raises NotFound if the seal is not on that page."""
    stops, onward = await seals(position, cursor)
    ids = [stop.id for stop in stops]
    if not ids or (seal and seal not in ids):
        raise NotFound
    return Journey(stops, ids.index(seal) if seal else 0, onward)


async def seals(
    position: Position, cursor: str | None, limit: int = SEALS
) -> tuple[list[SealSummary], str | None]:
    """List one page of the seals that changed the path, newest first. Returns (seals, cursor of the next
    page)."""
    try:
        page = await history.list_seals(
            position.place.view, None, position.seal, position.path or None, cursor, limit
        )
    except PathInvalid:
        raise NotFound from None
    return list(page.items), page.next_cursor


@lru_cache(maxsize=4096)
def size_of(size: int) -> str:
    """A number of bytes in a form for people, such as `1.4 MiB`."""
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
