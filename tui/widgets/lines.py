"""The list widget of the app. Its rows have keys and consist of one or two lines. They are painted when they
become visible.

`Lines` has a cursor that stays on its item. If rows are added above, the cursor moves along with the item.
There is no scroll bar, because the title of the pane shows the position."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from rich.cells import cell_len
from rich.style import Style
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from tui.display.hyperlinks import opened_by_terminal
from tui.text import Part, columns, cut_middle_of_part, fold, safe
from tui.theme import THEMES
from tui.widgets.framed import Framed
from tui.widgets.strips import NO_LINKS, NO_PARTS, sign_hidden, strip, widen

MARK = "▌"
LINKED = ("link", "person")  # roles of parts that lead somewhere, in rows with targets
UNMATCHED = "nothing matches; esc lists all"
NOTE_MARGIN, ROOMY = 2, 40  # columns beside the note of an empty list that has as many
WHEEL = 3  # rows of one step of the wheel
NONE_MATCHED: tuple[str, Sequence[int]] = ("", ())  # the last filter, and the places of what it matched
COUNTED = 20_000  # rows in which what a search finds is counted
HEADINGS = 200  # rows among which there may be headings


class Item(NamedTuple):
    """One row of a list. It is made of parts, which are pairs of a text and a role (the name of a style).
    `key`: None if the row cannot be chosen, as with a heading. `left`, `right`: the parts at the left and at
    the right edge. `text`: the text in which filters look for the typed words. `targets`: where the links in
    its parts lead, in order. `rest`: the role that paints the area to the right of the parts. `below`: the
    second line, in lists whose rows have two lines. In such a list the first line of a heading is empty, and
    separates it from the rows above. `fixed`: how many parts at the left stay where they are while the rest
    is scrolled sideways, such as a line number. `cuts_middle_of`: the index of the part at the left whose
    middle is cut if the row has no room, such as a name that differs from others at its end. -1: none."""

    key: Hashable | None
    left: tuple[Part, ...]
    right: tuple[Part, ...] = ()
    text: str = ""
    targets: tuple[str, ...] = ()
    below: tuple[Part, ...] = ()
    rest: str = "text"
    fixed: int = 0
    cuts_middle_of: int = -1


def heading(name: str, count: int | None = None, right: str = "") -> Item:
    """Returns a row with the heading of the rows below it. `count`: how many rows there are. `right`: a text
    at the right edge."""
    parts = ((f"{name} ", "title"), ("" if count is None else str(count), "dim"))
    return Item(None, parts, ((right, "dim"),) if right else ())


def queued_rows(descriptions: Iterable[str]) -> list[Item]:
    """Returns a row for each action that waits in the outbox. `descriptions`: what the actions do."""
    return [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in descriptions]


class Rows(Protocol):
    """Rows that are made when they are painted, so that the cost depends only on the visible rows. Four
    methods are optional. `place_of(key)` finds a row without looking at the rows before it. `key_of(index)`
    returns the key of a row without making the row. `text_of(index)` returns the text of a row, for searches
    and filters, without making the row. `item_at_top(index)` makes a row as it looks where it is the first
    visible one."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Item: ...


class Lines(Framed, can_focus=True):
    """A list with a cursor. `show(rows)` sets the rows. `Chosen` is posted at enter, and `Moved` when the
    cursor moves."""

    DEFAULT_CSS = "Lines { height: 1fr; width: 1fr; }"
    edges = (0, 0)  # blank columns at the left and at the right, which have the background of their row

    class Chosen(Message):
        def __init__(self, lines: Lines, key: Hashable) -> None:
            self.lines, self.key = lines, key
            super().__init__()

    class Moved(Message):
        def __init__(self, lines: Lines) -> None:
            self.lines = lines
            super().__init__()

    class Followed(Message):
        """Posted when the user follows a link."""

        def __init__(self, lines: Lines, target: str) -> None:
            self.lines, self.target = lines, target
            super().__init__()

    def __init__(
        self,
        *,
        marked: bool = True,
        searches: bool = False,
        linked: bool = False,
        empty: str = "",
        unmatched: str = UNMATCHED,
        waiting: str = "",
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.waiting = waiting  # instead of `empty`, until the first rows
        self.is_unread = False  # whether `waiting` says that the rows could not be read
        self.rows: Rows = ()
        self.cursor = 0
        self.top = 0
        self.shift = 0  # columns scrolled to the right
        self.marked = marked
        self.linked = linked  # whether rows may have links
        self._link = 0  # the chosen one of the row under the cursor
        self.searches = searches  # `/` goes to what matches instead of leaving out the rest
        self.empty, self.unmatched = empty, unmatched
        self.covered = 0  # lines at the bottom that a card over the screen covers
        self.tall = 1  # lines of a row: 1 or 2
        self._headed: tuple[Rows, list[int]] = ((), [])  # rows, and the places of headings among them
        self._all: Rows = ()
        self._sought: list[str] = []  # what a filter looks in, of all rows, while there is one
        self._matched = NONE_MATCHED
        self._reveals = False  # whether what the search has found is revealed once the list has a size
        self._filter = ""
        self._found: tuple[Rows, str, Sequence[int]] = (
            (),
            "",
            (),
        )  # rows, text sought, places of rows with it

    @property
    def item(self) -> Item | None:
        """The row under the cursor, None if there is none."""
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    @property
    def key(self) -> Hashable | None:
        return _key_in(self.rows, self.cursor) if 0 <= self.cursor < len(self.rows) else None

    @property
    def position(self) -> str:
        """The place of the cursor among the rows that can be chosen, as text such as `3 of 12`. "" if it is
        on none of them."""
        if self.key is None:
            return ""
        headings = self._headings()
        above = bisect_left(headings, self.cursor)
        return f"{self.cursor + 1 - above} of {len(self.rows) - len(headings)}"

    def _headings(self) -> list[int]:
        """Returns the indices of the headings among the first HEADINGS rows. They are computed again only if
        the list shows other rows."""
        if self._headed[0] is not self.rows:
            last = min(len(self.rows), HEADINGS)
            self._headed = self.rows, [at for at in range(last) if _key_in(self.rows, at) is None]
        return self._headed[1]

    @property
    def fits(self) -> int:
        """The number of rows that fit into the visible part."""
        return self.size.height // self.tall

    def on_unmount(self) -> None:
        # A closed screen is freed when cycles are collected, which may be much later. Its rows can be large.
        self.rows = self._all = ()
        self._headed, self._found = ((), []), ((), "", ())
        self._sought, self._matched, self.cursor, self.top = [], NONE_MATCHED, 0, 0

    def stand(self, tall: int) -> None:
        """Show each row with this many lines (`tall`)."""
        if tall != self.tall:
            self.tall = tall
            self._settle()
            self.refresh()

    def show(self, rows: Rows, cursor: Hashable | None = None) -> None:
        """Show these rows. The cursor goes to the row with the key `cursor`. Without `cursor`, the cursor
        stays on its item."""
        self.waiting, self.is_unread = "", False
        key = cursor if cursor is not None else self.key
        offset = self.cursor - self.top
        self._all, self._sought, self._matched = rows, [], NONE_MATCHED
        self.rows = self._filter_rows()
        place = self._place_of(key)
        if place is not None:
            self.cursor, self.top = place, max(0, place - offset)
        self._settle()
        self.refresh()

    def cover(self, lines: int) -> None:
        """Scroll so that the row under the cursor is above the last `lines` lines, because a card covers
        these. 0: no card does any more."""
        if lines != self.covered:
            self.covered = lines
            self._settle()
            self.refresh()

    def show_top(self) -> None:
        """Scroll to the first row. Does nothing if the row under the cursor would become invisible."""
        if self.cursor < self.fits:
            self.top = 0
            self.refresh()

    def filter(self, text: str) -> None:
        """Show only the rows that contain every word of `text`. Upper and lower case do not matter."""
        key = self.key
        self._filter = text
        if self.searches:
            return
        self.rows = self._filter_rows()
        self.cursor = self._place_of(key) or 0
        self._settle()
        self.refresh()
        self.post_message(self.Moved(self))

    def ready(self) -> None:
        """Finish a filtering that is still going on. Does nothing in this class. The list `Fuzzy` filters in
        slices of time, so it may have to finish."""

    def search(self, step: int) -> bool:
        """Go to the next row that contains the typed text, or with `step` −1 to the previous one. Returns
        False if there is none."""
        words, count = self._filter.casefold(), len(self.rows)
        self.refresh()
        if not words:
            return False
        if count <= COUNTED:
            places = self._places_found(words)
            after = bisect_right(places, self.cursor) if step > 0 else bisect_left(places, self.cursor) - 1
            if places:
                self.go(places[after % len(places)], step)
                self.reveal_found()
            return bool(places)
        text = self._text_of()
        for distance in range(1, count + 1):
            index = (self.cursor + distance * step) % count
            if words in text(index).casefold():
                self.go(index, step)
                self.reveal_found()
                return True
        return False

    def _text_of(self) -> Callable[[int], str]:
        """Returns a function that returns the text of a row. The function is given the index of the row."""
        return getattr(self.rows, "text_of", None) or (lambda index: text_of(self.rows[index]))

    def _places_found(self, words: str) -> Sequence[int]:
        """Returns the indices of the rows that contain `words`, which are in lower case. They are computed
        again only for other words or other rows."""
        if self._found[0] is not self.rows or self._found[1] != words:
            text = self._text_of()
            places = [index for index in range(len(self.rows)) if words in text(index).casefold()]
            self._found = self.rows, words, places
        return self._found[2]

    @property
    def found_words(self) -> str:
        """The place of the cursor among the rows that the search has found, as text such as `3 of 41`. "" if
        the cursor is on none of them."""
        rows, _, places = self._found
        at = bisect_left(places, self.cursor)
        on_one = rows is self.rows and at < len(places) and places[at] == self.cursor
        return f"{at + 1} of {len(places)}" if on_one else ""

    def move(self, by: int) -> None:
        """Move the cursor by this many rows. It stops at the first and the last row, and skips headings."""
        self.go(self.cursor + by, 1 if by > 0 else -1)

    def page(self, by: float) -> None:
        """Move the cursor by a share of the height of the list. `by`: the share, such as 0.5, negative for
        up."""
        self.move(int(by * max(2, self.fits - 1)) or (1 if by > 0 else -1))

    def go(self, index: int, step: int = 1) -> None:
        """Put the cursor on row `index`. If that row cannot be chosen, put it on the next row in the
        direction `step` that can."""
        before, last = self.cursor, len(self.rows) - 1
        index = max(0, min(index, last))
        chosen = self._choosable(index, step)
        if chosen is None:
            chosen = self._choosable(index, -step)
        if chosen is None or chosen == before:
            if step < 0 and self.top and index == 0:
                self.top = 0
                self.refresh()
            return
        self.cursor, top = chosen, self.top
        self._link = 0
        self._settle()
        if self.top == top:
            self.refresh(*(self._region(row) for row in (before, chosen)))
        else:
            self.refresh()
        self.post_message(self.Moved(self))

    def go_within(self, index: int) -> None:
        """Put the cursor on row `index`. If possible, a quarter of the height of the list stays visible above
        and below it."""
        self.go(index)
        around = self.fits // 4
        top = max(min(self.top, self.cursor - around), self.cursor + around + 1 - self.fits)
        top = max(0, min(top, len(self.rows) - self.fits))
        if top != self.top:
            self.top = top
            self.refresh()

    def go_to_block(self, first: int, last: int, above: int) -> None:
        """Put the cursor on row `first`, and scroll so that all rows up to `last` are visible, with `above`
        rows above them if there is room. Rows that do not fit begin at the top."""
        self.go(first)
        height = max(1, self.fits - self.covered // self.tall)
        spare = max(0, height - (last + 1 - first))  # rows that are left for others
        lowest, highest = last + 1 - height, max(0, first - min(above, spare))
        if lowest <= self.top <= highest:
            return
        far = not self.top <= first < self.top + height - 1
        top = first - max(min(above, spare), spare // 3) if far else max(lowest, min(self.top, highest))
        top = max(0, min(top if lowest <= first else first, len(self.rows) - height))
        if top != self.top:
            self.top = top
            self.refresh()

    def go_to(self, key: Hashable) -> None:
        """Put the cursor on the row with this key. Does nothing if there is no such row."""
        place = self._place_of(key)
        if place is not None:
            self.go(place)

    def show_at(self, key: Hashable, offset: int) -> bool:
        """Put the cursor on the row with this key, `offset` rows below the first visible one. Returns False
        if there is no such row."""
        place = self._place_of(key)
        if place is None:
            return False
        self.cursor, self.top = place, max(0, place - offset)
        self._settle()
        self.refresh()
        return True

    def find(self, matches: Callable[[Item], bool], step: int) -> bool:
        """Go to the next row for which `matches` is true, or with `step` −1 to the previous one. At the end
        of the list, the search continues at its beginning. Returns False if there is no such row."""
        count = len(self.rows)
        for distance in range(1, count + 1):
            index = (self.cursor + distance * step) % count
            if matches(self.rows[index]):
                self.go(index, step)
                return True
        return False

    def highlights(self, index: int) -> bool:
        """Returns whether row `index` is painted as the row under the cursor."""
        return index == self.cursor

    def slide(self, by: int) -> None:
        """Scroll sideways by this many columns. It ends where the longest visible row ends."""
        shift = max(0, self.shift + by)
        if by > 0:
            visible = range(self.top, min(self.top + max(1, self.fits), len(self.rows)))
            widest = max(map(self._overhang, visible), default=0)
            shift = min(shift, max(self.shift, widest))
        if shift != self.shift:
            self.shift = shift
            self.refresh()

    def _overhang(self, index: int) -> int:
        """Returns how many columns of a row do not fit into the width of the list."""
        item = self.rows[index]
        if item.fixed and item.fixed >= len(item.left):
            return 0
        cells = sum(cell_len(text) for text, _ in (*item.left, *item.right)) + 2 * bool(item.right)
        below = sum(cell_len(text) for text, _ in item.below)
        return max(0, max(cells, below) - (self.room - self.marked))

    def reveal_found(self) -> None:
        """Scroll sideways so that what the search has found in the row under the cursor is visible. If it is
        visible without scrolling, scroll back to the left edge."""
        if not self.size.width:  # it is laid out later, and not at all while it is hidden
            self._reveals = True
            return
        self._reveals = False
        place = self._place_found()
        if place is None:
            return
        start, end, room = place
        shift = 0 if end <= room else max(min(start, end - room), start - room * 2 // 3)
        if not (self.shift <= start and end <= self.shift + room):
            self.shift = shift
            self.refresh()

    def _place_found(self) -> tuple[int, int, int] | None:
        """Returns the columns (start, end) at which the searched text is in the row under the cursor, counted
        without what is fixed, and the number of columns that are visible at once. Returns None if the row
        does not contain it."""
        item, words = self.item, self._filter.casefold()
        if item is None or not words:
            return None
        fixed = sum(cell_len(text) for text, _ in item.left[: item.fixed])
        text = "".join(part for part, _ in item.left[item.fixed :])
        return found_columns(text, words, max(1, self.room - self.marked - fixed - 1))  # a sign may end it

    def clear_search(self) -> bool:
        """End a search, so that nothing is marked as found any more. Returns False if there was none."""
        searched = self.searches and bool(self._filter)
        if searched:
            self._filter = ""
            self.refresh()
        return searched

    @property
    def target(self) -> str:
        """The target of the chosen link in the row under the cursor. "" if the row has no link."""
        targets = self.item.targets if self.linked and self.item is not None else ()
        return targets[min(self._link, len(targets) - 1)] if targets else ""

    def step_link(self) -> bool:
        """Choose the next link in the row under the cursor. If there is none, choose the first link in a row
        below. Returns False if there is no link there either."""
        if not self.linked or self.item is None:
            return False
        if self._link + 1 < len(self.item.targets):
            self._link += 1
            self.refresh(self._region(self.cursor))
            return True
        begins = self.cursor + (1 if self.item.targets or self.cursor else 0)
        index = next((at for at in range(begins, len(self.rows)) if self.rows[at].targets), None)
        if index is not None:
            self.go(index)
            self._link = 0
        return index is not None

    def choose(self) -> None:
        if self.target:
            self.post_message(self.Followed(self, self.target))
        elif self.key is not None:
            self.post_message(self.Chosen(self, self.key))

    @property
    def sought(self) -> str:
        """The text by which the list is filtered."""
        return "" if self.searches else self._filter

    @property
    def searched(self) -> bool:
        """Whether a text was typed to search or filter the list by."""
        return bool(self._filter)

    @property
    def filtered(self) -> bool:
        """Whether the filter hides rows."""
        return bool(self._filter) and not self.searches

    def on_click(self, event: Click) -> None:
        """Put the cursor on the clicked row. If it is there already, choose the row."""
        event.stop()
        at = event.get_content_offset(self)
        index = self.top + at.y // self.tall if at is not None else -1
        if not 0 <= index < len(self.rows) or self.rows[index].key is None:
            return
        if index == self.cursor and self.has_focus:
            self.choose()
        else:
            self.go(index)

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        event.stop()
        self.scroll_rows(WHEEL)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        event.stop()
        self.scroll_rows(-WHEEL)

    def scroll_rows(self, by: int) -> None:
        """Scroll by this many rows. If the cursor would become invisible, it moves along."""
        height = max(1, self.fits)
        top = max(0, min(self.top + by, len(self.rows) - height))
        if top == self.top:
            self.move(by)
            return
        self.top = top
        if not top <= self.cursor < top + height:
            self.go(top if by > 0 else top + height - 1, 1 if by > 0 else -1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Returns line `y` of the visible part for Textual to paint. If the list is empty, the line is part
        of a note that says why."""
        styles = self.styles_of_theme
        index, second = self.top + y // self.tall, y % self.tall
        width = self.room
        if index >= len(self.rows):
            note = self._note_row(y, width) if not len(self.rows) else []
            return widen(strip(note, width, styles), *self.edges)
        item = self._top_item(index) if y < self.tall else self.rows[index]
        chosen = item.key is not None and self.highlights(index)
        mark = [(MARK if chosen else " ", "marker")] if self.marked else []
        left, right = (item.left, item.right) if self.tall == 1 else _halves(item)[second]
        if item.cuts_middle_of >= 0 and left is item.left:
            left = cut_middle_of_part(left, item.cuts_middle_of, right, width + self.shift - self.marked)
        unmarked = left
        if self.searches and self._filter and item.key is not None:
            left = mark_found(left, self._filter.casefold(), item.fixed)
        parts = columns(left, right, width + self.shift - self.marked)
        over = styles[self._over] if chosen else None
        leads = self.linked and bool(item.targets) and unmarked is item.left
        places = places_of_links(unmarked, left, len(mark)) if leads else ()
        bare = self._bare(item, places, chosen)
        links = self._addresses(item, places)
        line = strip([*mark, *parts], width + self.shift, styles, over, bare, links, item.rest)
        if self.shift:
            fixed = min(width, sum(cell_len(text) for text, _ in (*mark, *left[: item.fixed])))
            sliding = sign_hidden(line, fixed, self.shift).crop(fixed + self.shift, self.shift + width)
            line = Strip.join([line.crop(0, fixed), sliding]) if fixed else sliding
        return widen(line, *self.edges)

    def _top_item(self, index: int) -> Item:
        """Returns the first visible row. It may say what the rows above it would say."""
        at_top = getattr(self.rows, "item_at_top", None)
        return self.rows[index] if at_top is None else at_top(index)

    def _note_row(self, y: int, width: int) -> list[Part]:
        """Returns row `y` of the note of an empty list. The note has a margin around it if there is room for
        one."""
        margin = NOTE_MARGIN if width >= ROOMY else 1
        note = fold([(self._note(), "dim")], max(1, width - 2 * margin + 1))
        y -= int(len(note) < self.size.height)
        return [(" " * margin, "text"), *note[y]] if 0 <= y < len(note) else []

    def _note(self) -> str:
        """Returns the note that says why there are no rows."""
        if self.waiting:
            return self.waiting
        return self.unmatched if self.filtered else self.empty

    @property
    def room(self) -> int:
        """The number of columns between the edges."""
        return max(0, self.size.width - sum(self.edges))

    @property
    def _over(self) -> str:
        """The role (name of a style) that paints the row under the cursor. While another list has the focus,
        that is `resting`, which is only bold."""
        other = self.screen.focused
        if not self.has_focus and isinstance(other, Lines):
            return "resting"
        return getattr(self.app, "selected", "reversed")

    def _region(self, row: int) -> Region:
        return Region(0, (row - self.top) * self.tall, self.size.width, self.tall)

    def _addresses(self, item: Item, places: Sequence[range]) -> Mapping[int, str]:
        """Returns the web addresses of the links in a row, by the index of each part that belongs to the
        link. Returns {} if the terminal does not open links. `places`: where the links are painted."""
        if not places or not getattr(self.app, "opens_links", False):
            return NO_LINKS
        named = zip(places, item.targets, strict=False)
        return {at: target for place, target in named if opened_by_terminal(target) for at in place}

    def _bare(self, item: Item, places: Sequence[range], chosen: bool) -> range:
        """Returns the indices of the parts that keep their own style in the row under the cursor. They are
        those of the chosen link, if the row has several links. `places`: where the links are painted.
        `chosen`: whether the cursor is on the row."""
        if not chosen or not places or len(item.targets) < 2:
            return NO_PARTS
        return places[min(self._link, len(places) - 1)]

    @property
    def styles_of_theme(self) -> dict[str, Style]:
        return THEMES[getattr(self.app, "colours", "terminal")]

    def on_resize(self) -> None:
        self._settle()
        if self._reveals:
            self.reveal_found()
        self.refresh()

    def _filter_rows(self) -> Rows:
        words = [] if self.searches else self._filter.casefold().split()
        if not words:
            self._sought, self._matched = [], NONE_MATCHED
            return self._all
        texts = self._sought = self._sought or texts_of(self._all)
        typed, (before, places) = self._filter.casefold(), self._matched
        if not before or not typed.startswith(before):  # what is typed on narrows what matched
            places = range(len(texts))
        for word in words:
            places = [at for at in places if word in texts[at]]
        self._matched = typed, places
        return self._in_order(places)

    def _in_order(self, places: Sequence[int]) -> Rows:
        """Returns the rows that a filter leaves. `places`: their indices among all rows."""
        return FilteredRows(self._all, places)

    def _place_of(self, key: Hashable | None) -> int | None:
        """Returns the index of the row with this key. Returns None if no row has it."""
        return None if key is None else _place_in(self.rows, key)

    def _choosable(self, index: int, step: int) -> int | None:
        while 0 <= index < len(self.rows):
            if _key_in(self.rows, index) is not None:
                return index
            index += step
        return None

    def _settle(self) -> None:
        """Move the cursor to a row that can be chosen, and scroll so that it is visible."""
        count, height = len(self.rows), max(1, self.fits - self.covered // self.tall)
        self.cursor = max(0, min(self.cursor, count - 1))
        chosen = self._choosable(self.cursor, 1)
        if chosen is None:
            chosen = self._choosable(self.cursor, -1)
        self.cursor = chosen if chosen is not None else 0
        if self.cursor < self.top:
            self.top = self.cursor
        elif self.cursor >= self.top + height:
            self.top = self.cursor - height + 1
        if self.top and self.cursor < height and self._choosable(self.cursor - 1, -1) is None:
            self.top = 0  # only headings are above it
        self.top = max(0, min(self.top, count - height)) if self.size.height else self.top


def _halves(item: Item) -> tuple[tuple[tuple[Part, ...], tuple[Part, ...]], ...]:
    """Returns the parts of both lines of a row, as (left, right) of each line. If the row is a heading, its
    first line is empty."""
    if item.key is None and not item.below:
        return ((), ()), (item.left, item.right)
    return (item.left, item.right), (item.below, ())


def found_columns(text: str, words: str, room: int) -> tuple[int, int, int] | None:
    """Returns the columns (start, end) of the first occurrence of `words`, which are in lower case, and
    `room`. Returns None if the text does not contain them."""
    lower = text.casefold()
    at = lower.find(words) if len(lower) == len(text) else -1
    if at < 0:
        return None
    start = cell_len(text[:at])
    return start, start + cell_len(text[at : at + len(words)]), room


def mark_found(parts: Sequence[Part], words: str, fixed: int = 0) -> tuple[Part, ...]:
    """Returns the parts, split so that each occurrence of `words` is marked as found. `words` is in lower
    case. Line numbers before the text are not searched, and neither are the first `fixed` parts."""
    gutters = (at for at, (_, role) in enumerate(parts) if not role.endswith("gutter"))
    begins = max(fixed, next(gutters, len(parts)))
    text = "".join(part for part, _ in parts[begins:])
    lower = text.casefold()
    if words not in lower or len(lower) != len(text):
        return tuple(parts)
    cuts: list[int] = []  # where what was found begins and ends, in turn
    at = lower.find(words)
    while at >= 0:
        cuts += [at, at + len(words)]
        at = lower.find(words, at + len(words))
    marked: list[Part] = list(parts[:begins])
    start = 0
    for part, role in parts[begins:]:
        first, last = bisect_right(cuts, start), bisect_left(cuts, start + len(part))
        edges = [start, *cuts[first:last], start + len(part)]
        for place, (begin, end) in enumerate(itertools.pairwise(edges), first):
            base = role.rpartition(" ")[2] if place % 2 else role
            marked.append((text[begin:end], f"found {base}" if place % 2 else role))
        start += len(part)
    return tuple(marked)


def places_of_links(parts: Sequence[Part], painted: Sequence[Part], before: int) -> list[range]:
    """Returns the indices of the painted parts of each link in a row. A search splits a part in which it has
    found something. `parts`: the parts of the row. `painted`: the same parts, split. `before`: how many parts
    are painted before them, which the indices count too."""
    places: list[range] = []
    at = 0
    for text, role in parts:
        begin, rest = at, len(text)
        while at == begin or rest > 0:
            rest -= len(painted[at][0])
            at += 1
        if role in LINKED:
            places.append(range(begin + before, at + before))
    return places


def text_of(item: Item) -> str:
    """Returns the text of a row. Filters and searches look for the typed words in it."""
    return item.text or "".join(part for part, _ in (*item.left, *item.right, *item.below))


def texts_of(rows: Rows, begin: int = 0, end: int | None = None) -> list[str]:
    """Returns the texts of the rows from `begin` to `end`. Filters look for the typed words in them. The text
    is "" for a row that cannot be chosen."""
    text, every = getattr(rows, "text_of", None), range(len(rows))[begin:end]
    if text is not None:
        return [text(index).casefold() for index in every]
    return [text_of(item).casefold() if item.key is not None else "" for item in map(rows.__getitem__, every)]


def _key_in(rows: Rows, index: int) -> Hashable | None:
    """Returns the key of row `index`. If possible, the row itself is not made."""
    key_of = getattr(rows, "key_of", None)
    return rows[index].key if key_of is None else key_of(index)


def _place_in(rows: Rows, key: Hashable) -> int | None:
    place = getattr(rows, "place_of", None)
    if place is not None:
        return place(key)  # type: ignore[no-any-return]
    return next((index for index in range(len(rows)) if rows[index].key == key), None)


class FilteredRows:
    """Only those rows that match a filter. `places`: their indices among all rows, in order."""

    def __init__(self, rows: Rows, places: Sequence[int]) -> None:
        self._rows, self._places = rows, places

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int, /) -> Item:
        return self._rows[self._places[index]]

    def key_of(self, index: int) -> Hashable | None:
        return _key_in(self._rows, self._places[index])

    def place_of(self, key: Hashable) -> int | None:
        place = _place_in(self._rows, key)
        at = len(self._places) if place is None else bisect_left(self._places, place)
        return at if at < len(self._places) and self._places[at] == place else None


def sequence(items: Sequence[Item]) -> Rows:
    """Returns these items as `Rows` that find a row quickly by its key."""
    return _Indexed(items)


class _Indexed:
    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        self._places = {item.key: place for place, item in enumerate(items) if item.key is not None}

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int, /) -> Item:
        return self._items[index]

    def place_of(self, key: Hashable) -> int | None:
        return self._places.get(key)
