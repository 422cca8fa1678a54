"""Renders the Markdown texts of one screen as rows, and keeps the rows for the next time.

    texts = Texts(screen, screen.paint)
    items = [item(place, row) for place, row in enumerate(texts.rows(issue.body, width))]

Rows are made once for each text and width. The colours of code are added later, by `tui.colouring`. If a text
takes too long to parse, it is shown unformatted."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import unquote

from localstore.core.words import first_line
from tui.highlight import ColouredText, colour_text
from tui.slices import within
from tui.text import Part, wrap
from tui.widgets.lines import Item

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.asked import AskedApp
    from tui.markdown.words import Row

LATE_MAX = 3  # texts of a screen that may take too long; the others are then shown as they were written
KEPT = 500  # pages that are kept
BLOCKS = 100  # of code that are coloured on one screen
COLOUR_SECONDS = 6.0  # that they may take together
MARKDOWN = (".md", ".markdown")
PICTURE = "▣"  # the target of a picture without an address
DETAILS = "details:"  # begins the target of a row that folds: the number of its text and its own

Line = tuple[Part, ...]
T = TypeVar("T")


class Texts:
    """The Markdown texts of a screen or a tab. `of`: the screen or tab. `repaint`: called when rows have
    changed."""

    def __init__(self, of: Widget, repaint: Callable[[], None]) -> None:
        self._of, self._repaint = of, repaint
        self._pages: dict[tuple[str, int, bool], list[Row]] = {}
        self._lines: dict[tuple[str, int, bool], list[int]] = {}  # of the text, for each row of a page
        self._opened: dict[int, set[int]] = {}  # the number of a text → its details that are unfolded
        self._numbers: dict[str, int] = {}
        self._late = 0
        self._colours: dict[tuple[str, str], ColouredText | None] = {}
        self._wanted: dict[tuple[str, str], None] = {}

    def rows(self, text: str, width: int, *, breaks: bool = True) -> list[Row]:
        """Returns the rows of a text. `breaks`: each line break in the text begins a new row, as in
        comments."""
        key = (text, width, breaks)
        page = self._pages.get(key)
        if page is None:
            if len(self._pages) > KEPT:
                self._pages.clear()
                self._lines.clear()
            page, self._lines[key] = self._render(text, width, breaks)
            self._pages[key] = page
            self._ask_for_colours()
        return page

    def lines(self, text: str, width: int, *, breaks: bool = True) -> list[int]:
        """Returns the number of the line, from 1, that each row of a text shows. See `rows`."""
        self.rows(text, width, breaks=breaks)
        return self._lines[(text, width, breaks)]

    def toggle(self, target: str) -> None:
        """Fold or unfold a `<details>` of a text. `target`: the target of the link that folds it."""
        number, place = (int(word) for word in target.removeprefix(DETAILS).split(":"))
        self._opened.setdefault(number, set()).symmetric_difference_update({place})
        self._pages.clear()
        self._repaint()

    def _render(self, text: str, width: int, breaks: bool) -> tuple[list[Row], list[int]]:
        """Returns the rows of a text, and the number of the line that each of them shows."""
        from tui.markdown.page import Taste, render_markdown
        from tui.markdown.words import Row

        number = self._numbers.setdefault(text, len(self._numbers))
        taste = Taste(breaks, self._opened.get(number, frozenset()))
        page = None
        if self._late < LATE_MAX:
            page, late = run_timed(lambda: render_markdown(text, width, taste, self._colour))
            self._late += late
        if page is None:
            wrapped = [wrap(line, width) for line in text.replace("\r\n", "\n").rstrip("\n").split("\n")]
            rows = [Row(((row, "text"),)) for lines in wrapped for row in lines]
            return rows, [line for line, lines in enumerate(wrapped, 1) for _ in lines]
        rows = [
            row._replace(targets=tuple(_own(target, number) for target in row.targets)) for row in page.rows
        ]
        return rows, page.lines

    def _colour(self, text: str, language: str) -> Sequence[Line] | None:
        key = (text, language)
        if key not in self._colours and len(self._colours) + len(self._wanted) < BLOCKS:
            self._wanted[key] = None
        return self._colours.get(key)

    def _ask_for_colours(self) -> None:
        plain, self._wanted = list(self._wanted), {}
        if not plain:
            return
        self._colours.update(dict.fromkeys(plain))

        def work() -> None:
            until = time.monotonic() + COLOUR_SECONDS
            colours = {key: colour_text(key[0], language=key[1]) for key in plain if time.monotonic() < until}
            app.later(lambda: self._learn(colours))

        app = cast("AskedApp", self._of.app)
        app.run_worker(work, thread=True, group="markdown", exit_on_error=False)

    def _learn(self, colours: dict[tuple[str, str], ColouredText | None]) -> None:
        if self._of.is_attached and any(lines is not None for lines in colours.values()):
            self._colours.update(colours)
            self._pages.clear()
            self._repaint()


def run_timed(work: Callable[[], T]) -> tuple[T | None, bool]:
    """Calls `work` for a limited time. Returns its result, and whether it took too long. If it did, it was
    ended, and the result is None."""
    from tui.markdown.page import SECONDS

    done: list[bool] = []

    def whole() -> T:
        result = work()
        done.append(True)
        return result

    return within(SECONDS, whole), not done


def beginning(text: str, lines: int, size: int) -> str:
    """Returns the beginning of a text: at most `lines` lines, and at most `size` characters."""
    return "\n".join(text[:size].split("\n", lines)[:lines])


def first_words(text: str) -> str:
    """Returns the first line of a Markdown text for a row of a list, without the signs of Markdown."""
    first = first_line(text)
    return first.lstrip("#*-> ").replace("**", "").replace("`", "").rstrip()


def is_markdown(path: str) -> bool:
    """Returns whether the file at this path is shown as Markdown. The ending of its name decides that."""
    return path.casefold().endswith(MARKDOWN)


def linked_path(path: str, target: str) -> str | None:
    """Returns the path in the repository that a link leads to. Returns None if it leads elsewhere. `path`:
    the file that contains the link. `target`: the target of the link."""
    words = unquote(target.partition("#")[0].partition("?")[0])
    if not words or ":" in words or "#" in target[:1] or words.startswith(("@", "//", PICTURE)):
        return None
    linked = posixpath.normpath(posixpath.join("/" if words[0] == "/" else posixpath.dirname(path), words))
    return None if linked.startswith("..") or linked in (".", "/") else linked.lstrip("/")


def item(key: Hashable | None, row: Row | Line) -> Item:
    """Returns a row of a text as an item of a list with this key. The row is a `Row`, or its parts."""
    from tui.markdown.words import Row

    return Item(key, row.parts, targets=row.targets) if isinstance(row, Row) else Item(key, row)


def _own(target: str, number: int) -> str:
    return f"{DETAILS}{number}:{target.removeprefix(DETAILS)}" if target.startswith(DETAILS) else target
