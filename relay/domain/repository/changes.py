"""Data of the pages that show differences: a comparison, a seal, a proposal with its threads."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Literal

from msgspec.structs import replace

from localstore.core.errors import Invalid, NotFound, TooLarge
from localstore.core.model.history import ChangedFile, Compare, CompareQuery
from localstore.core.model.issue import Comment
from localstore.core.model.limits import KIB
from localstore.core.model.proposal import Proposal
from localstore.core.model.thread import Side, Thread, ThreadQuery
from relay.db.paging import Cursor
from relay.domain.history import compare
from relay.domain.proposal import thread as threads
from relay.domain.repository.place import ShownRepository
from relay.domain.repository.talk import Text, Texts

THREADS, COMMENTS = 50, 20  # of one page; of one thread
ROWS, CHARS = 5000, 512 * KIB  # lines of all differences of one page, and their characters
COMPARED_CHARS = 500  # of lines whose changed part is looked for
SUGGESTED = 200  # lines that the form of a new thread repeats for a suggestion
REFUSED = "You may not see it here, or this node does not offer it."
UNKNOWN = "There is no such branch, tag or seal here."
ANOTHER = "This page belongs to another comparison; start again at the first one."
_HUNK = re.compile(r"@@ -([0-9]+)(?:,[0-9]+)? \+([0-9]+)(?:,[0-9]+)? @@")

Kind = Literal["ins", "del", "hunk", "same", "note"]


@dataclass(slots=True)
class RenderedThread:
    """A thread with its first comments, rendered. `more`: the number of further comments."""

    thread: Thread
    comments: list[tuple[Comment, Text]]
    more: int


@dataclass(slots=True)
class NewThread:
    """Lines on which the reader begins a thread. `text`: the text of these lines. It is None if the page does
    not show them all."""

    path: str
    side: Side
    start: int
    end: int
    text: str | None = None


@dataclass(slots=True)
class DiffLine:
    """One line of a difference. `old`, `new`: its line number on each side, None if that side lacks the line.
    `changed`: the part of the text, as (start, end), that differs from the corresponding line on the other
    side. It is None if no line corresponds, or if the two lines have little in common."""

    kind: Kind
    text: str
    old: int | None = None
    new: int | None = None
    changed: tuple[int, int] | None = None
    threads: list[RenderedThread] = field(default_factory=list)
    new_thread: NewThread | None = None


@dataclass(slots=True)
class Difference:
    """A changed file, with the lines of its difference. `rows` is empty if `file.patch` is None. `unshown`:
    how many further lines there are, which are too many for a page."""

    file: ChangedFile
    rows: list[DiffLine]
    unshown: int = 0

    def pieces(self, to_old: str, to_new: str) -> Iterator[tuple[str, DiffLine | None]]:
        """Yields the difference in pieces, as (rows, line). `rows`: rows of an HTML table of lines. `line`:
        the line of the last row if threads are shown below that line, else None. `to_old`, `to_new`:
        addresses to which the number of a line is appended, for a new thread on it; "" for no links. Made
        without a template, because a page has thousands of lines."""
        rows: list[str] = []
        for row in self.rows:
            rows.append(_row(row, to_old, to_new))
            if row.threads or row.new_thread:
                yield "".join(rows), row
                rows = []
        yield "".join(rows), None


@dataclass(slots=True)
class Comparison:
    """A comparison of two seals as a page shows it. `reason`: why it cannot be shown, "" if it can."""

    changes: Compare | None = None
    files: list[Difference] = field(default_factory=list)
    reason: str = ""

    @property
    def added(self) -> int:
        """The number of lines that were added in the files of this page."""
        return sum(difference.file.additions or 0 for difference in self.files)

    @property
    def removed(self) -> int:
        """The number of lines that were removed in the files of this page."""
        return sum(difference.file.deletions or 0 for difference in self.files)


@dataclass(slots=True)
class ProposalFiles:
    """The changes of a proposal, with its open threads. `elsewhere`: threads whose lines are not on this
    page. `new_thread`: the thread that the reader begins, if its lines are not on this page. `more`: whether
    there are further threads."""

    comparison: Comparison
    elsewhere: list[RenderedThread] = field(default_factory=list)
    new_thread: NewThread | None = None
    more: bool = False


def _row(row: DiffLine, to_old: str, to_new: str) -> str:
    """A line of a comparison as a row of an HTML table. `to_old`, `to_new`: addresses to which the line's
    number on that side is appended, for a new thread on the line; "" for no links."""
    old, new = row.old or "", row.new or ""
    if to_old and row.kind == "del":
        old = f'<a href="{to_old}{old}#new-thread">{old}</a>'
    if to_new and new:
        new = f'<a href="{to_new}{new}#new-thread">{new}</a>'
    if row.changed:
        start, end = row.changed
        before, changed, after = row.text[:start], row.text[start:end], row.text[end:]
        text = f"{escape(before)}<mark>{escape(changed)}</mark>{escape(after)}"
    else:
        text = escape(row.text)
    return f'<tr class="{row.kind}"><td>{old}</td><td>{new}</td><td><code>{text}</code></td></tr>\n'


def difference_of(file: ChangedFile) -> Difference:
    """Make a Difference of a changed file, with as many lines as one page shows."""
    if not file.patch:
        return Difference(file, [])
    piece = file.patch[:CHARS]
    lines = piece.removesuffix("\n").split("\n", ROWS)
    if len(lines) <= ROWS and len(piece) == len(file.patch):
        return Difference(file, diff_lines(file.patch))
    lines.pop()  # the rest, or the beginning of a line
    return Difference(file, diff_lines("\n".join(lines)), _count_lines(file.patch) - len(lines))


def _count_lines(patch: str) -> int:
    return patch.count("\n") + (not patch.endswith("\n"))


def diff_lines(patch: str) -> list[DiffLine]:
    """Read the lines of a unified difference, from its first hunk on, with their numbers on both sides."""
    rows: list[DiffLine] = []
    old = new = 0
    for line in patch.removesuffix("\n").split("\n"):
        hunk = _HUNK.match(line)
        if hunk is not None:
            old, new = int(hunk[1]), int(hunk[2])
            rows.append(DiffLine("hunk", line))
        elif not rows:
            continue  # the names of the file
        elif line.startswith("+"):
            rows.append(DiffLine("ins", line, None, new))
            new += 1
        elif line.startswith("-"):
            rows.append(DiffLine("del", line, old, None))
            old += 1
        elif line.startswith("\\"):
            rows.append(DiffLine("note", line))
        else:
            rows.append(DiffLine("same", line, old, new))
            old, new = old + 1, new + 1
    _mark_changes(rows)
    return rows


def _mark_changes(rows: list[DiffLine]) -> None:
    """Set `changed` of lines that replace each other. If a group of deleted lines is followed by a group of
    equally many added lines, each added line is compared with the deleted line that it replaces."""
    blocks = [list(block) for _, block in groupby(rows, attrgetter("kind"))]
    for before, after in pairwise(blocks):
        if before[0].kind == "del" and after[0].kind == "ins" and len(before) == len(after):
            for removed, added in zip(before, after, strict=True):
                if max(len(removed.text), len(added.text)) <= COMPARED_CHARS:
                    _mark_pair(removed, added)


def _mark_pair(removed: DiffLine, added: DiffLine) -> None:
    old, new = removed.text[1:], added.text[1:]
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    common = f"{old[:start]}{old[len(old) - end :]}".strip()
    if 3 * len(common) >= max(len(old.strip()), len(new.strip())):
        for line in (removed, added):
            span = (start + 1, len(line.text) - end)
            line.changed = span if span[0] < span[1] else None


def _alike(old: str, new: str) -> int:
    """The number of characters that are equal at the beginning of both texts."""
    low, high = 0, min(len(old), len(new))
    while low < high:  # halving takes a tenth of the time of a look at each character
        middle = (low + high + 1) // 2
        low, high = (middle, high) if old[:middle] == new[:middle] else (low, middle - 1)
    return low


async def comparison(place: ShownRepository, query: CompareQuery) -> Comparison:
    """The comparison, or the reason why this reader may not see it."""
    if not place.may("history.compare"):
        return Comparison(reason=REFUSED)
    return await _compare(place, query)


async def of_seal(place: ShownRepository, seal: str, cursor: str | None) -> Comparison:
    """The changes of a seal. Everybody who may read its files may see them, because the two compared trees
    never change."""
    if not place.offers("history.compare"):
        return Comparison(reason=REFUSED)
    return await _compare_seals(place, None, seal, cursor)


async def _compare(place: ShownRepository, query: CompareQuery) -> Comparison:
    try:
        changes = await compare.compare(place.view, query)
    except NotFound:
        return Comparison(reason=UNKNOWN)
    except (Invalid, TooLarge) as error:
        return Comparison(reason=error.detail)
    return _first_page(changes, query)


def _first_page(changes: Compare, query: CompareQuery) -> Comparison:
    """Keep as many of the changed files as one page shows, but at least one. For the other files, the answer
    has a cursor."""
    rows, characters, count = ROWS, CHARS, 0
    for file in changes.files:
        patch = file.patch or ""
        rows, characters = rows - _count_lines(patch), characters - len(patch)
        if count and (rows < 0 or characters < 0):
            break
        count += 1
    if count < len(changes.files):
        base, head, at = (changes.base if query.base is not None else None) or "", changes.head, 0
        if query.cursor is not None:
            at = int(Cursor.read(query.cursor, "", "", 0)[2])
        cursor = Cursor.write(base, head, at + count)
        changes = replace(changes, files=changes.files[:count], next_cursor=cursor)
    return Comparison(changes, [difference_of(file) for file in changes.files])


async def _compare_seals(
    place: ShownRepository, base: str | None, head: str, cursor: str | None
) -> Comparison:
    """Compare these two seals. Without a base, the head is compared with its first parent. A cursor contains
    the ids of the seals itself. A cursor of another comparison is refused, because the page would show other
    seals than its heading names."""
    result = await _compare(place, CompareQuery(base=base, head=head, cursor=cursor))
    changes = result.changes
    if changes is not None and (changes.head != head or (base is not None and changes.base != base)):
        return Comparison(reason=ANOTHER)
    return result


async def of_proposal(
    place: ShownRepository, proposal: Proposal, cursor: str | None, new_thread: NewThread | None = None
) -> ProposalFiles:
    """The changes of the newest version of a proposal. Each open thread, and the thread that the reader
    begins, is below its lines. A reader who may not see these changes gets the reason instead."""
    if not place.may("history.compare"):
        return ProposalFiles(Comparison(reason=REFUSED))
    result = await _compare_seals(place, proposal.base_seal, proposal.head_seal, cursor)
    if result.changes is None:
        return ProposalFiles(result)
    page = await threads.page(place.view, str(proposal.number), ThreadQuery(limit=THREADS, state="open"))
    texts = Texts(place)
    rendered = [await _render_thread(texts, thread) for thread in page.items]
    lines = _lines_by_place(result.files)
    files = ProposalFiles(result, _place_threads(lines, rendered), more=page.next_cursor is not None)
    if new_thread is not None and not _place_new_thread(lines, new_thread):
        files.new_thread = new_thread
    return files


async def _render_thread(texts: Texts, thread: Thread) -> RenderedThread:
    comments: list[tuple[Comment, Text]] = []
    for comment in thread.comments[:COMMENTS]:
        if texts.full:
            break
        comments.append((comment, await texts.render(comment.body)))
    return RenderedThread(thread, comments, len(thread.comments) - len(comments))


_Lines = dict[tuple[Side, str, int], DiffLine]


def _lines_by_place(files: Sequence[Difference]) -> _Lines:
    """The lines of these files by side, path and number."""
    lines: _Lines = {}
    for difference in files:
        for row in difference.rows:
            if row.old is not None:
                lines["old", difference.file.old_path or difference.file.path, row.old] = row
            if row.new is not None:
                lines["new", difference.file.path, row.new] = row
    return lines


def _place_threads(lines: _Lines, threads: Sequence[RenderedThread]) -> list[RenderedThread]:
    """Put each thread below the last of its lines. Returns the threads for which `lines` does not have that
    line."""
    elsewhere = []
    for entry in threads:
        where = entry.thread.place
        line = None if where is None else lines.get((entry.thread.side, where.path, where.end))
        if line is None:
            elsewhere.append(entry)
        else:
            line.threads.append(entry)
    return elsewhere


def _place_new_thread(lines: _Lines, thread: NewThread) -> bool:
    """Put the form of a new thread below the last of its lines. Returns whether `lines` has that line."""
    last = lines.get((thread.side, thread.path, thread.end))
    if last is None:
        return False
    last.new_thread = thread
    if thread.end - thread.start < SUGGESTED:
        numbers = range(thread.start, thread.end + 1)
        rows = [lines.get((thread.side, thread.path, number)) for number in numbers]
        texts = [row.text[1:] for row in rows if row is not None]
        thread.text = "\n".join(texts) if len(texts) == len(rows) else None
    return True
