"""Data of the page that shows for each line of a file which seal it comes from."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from html import escape
from operator import attrgetter
from typing import ClassVar

from localstore.core.errors import Invalid, NotFound, NotText, PathInvalid, TooLarge
from localstore.core.model.history import BlameRange
from relay.domain.history import blame as blames
from relay.domain.history import files, history, sealed
from relay.domain.repository import code
from relay.domain.repository.changes import REFUSED
from relay.domain.repository.code import PagedLines, Position
from relay.domain.repository.place import ShownRepository
from relay.render.plain import Part, part_of

LINES = 5000  # of a page
_begin = attrgetter("start")


@dataclass(slots=True)
class Blamed(PagedLines):
    """A page of the lines of a file as HTML, with the seals that they come from. `first`: number of the first
    line. `count`: number of lines of the file. `whole`: False if the page has only one line, and that line is
    cut."""

    PAGE: ClassVar[int] = LINES
    place: ShownRepository
    lines: list[str]
    ranges: list[BlameRange]
    first: int
    count: int
    whole: bool = True

    @property
    def rows(self) -> str:
        """The lines as rows of an HTML table. Each row has the number of its line. Where the lines of a seal
        begin, the row has that seal too. Made without a template, because a page has thousands of lines."""
        begin = bisect_right(self.ranges, self.first, key=_begin) - 1
        end = bisect_right(self.ranges, self.last, key=_begin)
        owners = {max(owner.start, self.first): owner for owner in self.ranges[max(begin, 0) : end]}
        cells: dict[str, str] = {}
        rows = []
        for number, line in enumerate(self.lines, self.first):
            owner = owners.get(number)
            if owner is None:
                rows.append(f'<tr id="L{number}"><td>{number}<td><td>{line}\n')
                continue
            if owner.seal_id not in cells:
                cells[owner.seal_id] = self._cell(owner)
            rows.append(
                f'<tr id="L{number}" class="first"><td>{number}<td>{cells[owner.seal_id]}<td>{line}\n'
            )
        return "".join(rows)

    def _cell(self, owner: BlameRange) -> str:
        """A link to the seal, with the day on which it was made and who made it."""
        address = escape(self.place.tab("code", seal=owner.seal_id))
        title = escape(owner.message.split("\n")[0])
        who = escape(owner.who.handle or "a former guest")
        link = f'<a href="{address}" title="{title}">{owner.seal_id[:8]}</a>'
        return f"{link} <span>{owner.sealed_at[:10]} {who}</span>"


async def find(position: Position, cursor: str | None) -> tuple[Blamed | None, str]:
    """Read a page of the lines of a file with their seals. Returns (lines, ""), or (None, reason) if this
    reader cannot get them. Raises NotFound if there is no file, and Invalid if the cursor belongs to another
    file."""
    view = position.place.view
    if not position.place.may("history.blame"):
        seal = await sealed.seal(view, position.seal)
        await sealed.find_entry(view, seal.root, position.path)
        return None, REFUSED
    try:
        answer = await blames.blame(view, position.seal, position.path)
    except NotText:
        return None, "Only texts have lines that somebody wrote."
    except TooLarge as error:
        return None, error.detail
    except PathInvalid:
        raise NotFound from None
    first = code.line_of(cursor)
    lines = (await code.file(position, position.path, plain=True)).lines
    if len(lines) == answer.lines:
        part: Part | None = Part(lines[first - 1 : first - 1 + LINES], first)
    else:  # not all of it is on one page; or those who colour a text end a line at a lone carriage return too
        content = (await files.blob(view, position.seal, position.path)).content or ""
        part = part_of(content, first, LINES, code.PAGE_CHARS) if answer.lines else Part([], first)
    if part is None or (answer.lines and not part.lines):
        raise Invalid(history.WRONG_CURSOR, pointer="/cursor")
    return Blamed(position.place, part.lines, answer.ranges, first, answer.lines, part.whole), ""
