"""Data of the pages that show files: a folder, a file, the history of a path."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import escape
from typing import Literal
from urllib.parse import quote

from localstore.core.errors import NotFound, PathInvalid
from localstore.core.model.history import SealSummary, TreeFile
from localstore.core.model.limits import BLOB_INLINE
from localstore.core.model.ref import Ref
from relay.domain.history import history, sealed
from relay.domain.repository import ref as refs
from relay.domain.repository.place import Place
from relay.render.plain import numbered, plain_lines

BRANCHES = 100  # that the choice of a branch offers
SEALS = 30  # of a page of history
READMES = ("readme.md", "readme", "readme.txt", "readme.rst")
PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif")
MARKDOWN = (".md", ".markdown")
_LINES = re.compile(r"([0-9]{1,7})(?:-([0-9]{1,7}))?")

Shape = Literal["text", "markdown", "picture", "bytes"]


@dataclass(slots=True)
class Position:
    """The position of a page of files: `at` as in the address, `seal`: the seal that `at` names now, and the
    `path`."""

    place: Place
    at: str
    seal: str
    path: str
    refs: list[Ref] = field(default_factory=list)

    @property
    def crumbs(self) -> list[tuple[str, str]]:
        """The folders above and the path itself, each with its address."""
        parts = self.path.split("/") if self.path else []
        paths = ["/".join(parts[: end + 1]) for end in range(len(parts))]
        return [(part, self.place.code(self.at, path)) for part, path in zip(parts, paths, strict=True)]

    @property
    def is_permanent(self) -> bool:
        """Whether the address contains a seal id, so that the page never changes."""
        return self.at == self.seal


@dataclass(slots=True)
class File:
    """A file. `lines`: a text as pieces of HTML. `html`: rendered Markdown. Both are empty for other
    files."""

    name: str
    size: int
    digest: str
    shape: Shape
    lines: list[str] = field(default_factory=list)
    html: str = ""
    marked: range = range(0)

    @property
    def rows(self) -> str:
        """The lines as HTML, with their numbers."""
        return numbered(self.lines, self.marked)


async def position(place: Place, at: str | None, path: str) -> Position | None:
    """The position named by the address; None for a repository or branch without seals. Raises NotFound."""
    name = at or place.repo.default_branch
    async with place.view.read() as tx:
        seal = await sealed.head(place.view, tx, name)
    if seal is None:
        return None
    branches = await refs.page(place.view, None, None, BRANCHES)
    return Position(place, name, seal, path.strip("/"), list(branches.items))


async def folder(position: Position) -> list[TreeFile]:
    """The entries of a folder, folders first. Raises NotFound if there is none at the path."""
    try:
        tree = await history.tree(position.place.view, position.seal, position.path, recursive=False)
    except PathInvalid:
        raise NotFound from None
    return sorted(tree.entries, key=lambda entry: (entry.kind != "dir", entry.path))


def folder_rows(position: Position, entries: list[TreeFile]) -> str:
    """The rows of a folder as HTML. Made without a template, because a folder may have thousands."""
    above = f"{position.path}/" if position.path else ""
    start = escape(position.place.code(position.at, "x")[:-1] + quote(above))
    rows = []
    for entry in entries:
        name = entry.path.rpartition("/")[2]
        sign, end, size = ("▸", "/", "") if entry.kind == "dir" else ("·", "", size_of(entry.size))
        rows.append(
            f'<tr><td><span class="sign" aria-hidden="true">{sign}</span> <a href="{start}{quote(name)}">'
            f'{escape(name)}{end}</a></td><td class="size">{size}</td></tr>\n'
        )
    return "".join(rows)


async def readme(position: Position, entries: list[TreeFile]) -> File | None:
    """The README among these entries, rendered; None if there is none that can be shown."""
    by_name = {entry.path.rpartition("/")[2].casefold(): entry for entry in entries if entry.kind == "text"}
    entry = next((by_name[name] for name in READMES if name in by_name), None)
    return None if entry is None else await file(position, entry.path)


async def file(position: Position, path: str, plain: bool = False, lines: str = "") -> File:
    """A file at the seal. `plain`: show the source of Markdown too. `lines`: N or N-M, lines to mark. Raises
    NotFound."""
    try:
        blob = await history.blob(position.place.view, position.seal, path)
    except PathInvalid:
        raise NotFound from None
    name = path.rpartition("/")[2]
    answer = File(name, blob.size, blob.blake3, "bytes")
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
    answer.lines = await renderer.source(blob.content, name) or plain_lines(blob.content)
    answer.marked = marked(lines, len(answer.lines))
    return answer


def marked(lines: str, count: int) -> range:
    """The line numbers, from 1, of `N` or `N-M`; none for other text."""
    match = _LINES.fullmatch(lines)
    if match is None:
        return range(0)
    first, last = sorted((int(match[1]), int(match[2] or match[1])))
    return range(max(first, 1), min(last, count) + 1)


async def seals(
    position: Position, cursor: str | None, limit: int = SEALS
) -> tuple[list[SealSummary], str | None]:
    """(seals, cursor): a page of the seals that changed the path, newest first, and the cursor of the next
    page."""
    try:
        page = await history.commits(
            position.place.view, None, position.seal, position.path or None, cursor, limit
        )
    except PathInvalid:
        raise NotFound from None
    return list(page.items), page.next_cursor


def size_of(size: int) -> str:
    """A number of bytes for people: `1.4 MiB`."""
    amount, unit = float(size), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit}"
