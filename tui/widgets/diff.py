"""The list that shows a comparison. Its rows are files, hunks, and lines with the numbers of both sides, in
one column or in two."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from localstore.core.model.history import ChangedFile
from tui.text import safe
from tui.tints import Tints
from tui.widgets.coloured_file import FileColours
from tui.widgets.hunks import texts
from tui.widgets.lines import Item, Lines, found_columns
from tui.widgets.patch import Key, LineColours, NotedRows, Patches, Spot, divide_note

COLOURED = 24  # files whose colours are kept
NOTE_MAX = 96  # columns of a note at most
CONTEXT = 3  # lines of the file above a note that is gone to
BESIDE = 86  # columns that old and new need to be read side by side

Notes = Mapping[Spot, Sequence[Item]]


class Span(NamedTuple):
    """The selected lines of a file, on the old or the new side. `text`: the text of these lines."""

    path: str
    side: Literal["old", "new"]
    start: int
    end: int
    text: str


class Room(NamedTuple):
    """The columns in which a note below a line is shown: first `left` blanks, and then `width` columns."""

    left: int
    width: int


class Rooms(NamedTuple):
    """The columns for notes about lines of the old side and of the new side."""

    old: Room
    new: Room


class Diff(Lines):
    """The list that shows changed files. `split`: old and new are side by side, if there is room. `blanks`:
    changes of only white space are shown too. `seen`: the paths of the files whose lines are folded away.
    `heads`: whether a row with its name comes before each file."""

    edges = (1, 1)

    def __init__(self, id: str | None = None, *, heads: bool = True) -> None:
        super().__init__(marked=False, searches=True, empty="no difference", id=id)
        self.split, self.blanks, self.heads = False, True, heads
        self.seen: set[str] = set()
        self.colours: OrderedDict[str, FileColours] = OrderedDict()  # by path
        self._files: tuple[ChangedFile, ...] = ()
        self._notes: Callable[[Rooms], Notes] | None = None
        self._patches, self._half_room = Patches(), 0  # columns of a text beside another one
        self._anchor: Key | None = None
        self._begun = 0  # its row
        self._return_to: Hashable | None = None  # the line that the cursor was on
        # The first row of the note that is kept visible as a whole, its other rows, and the size of the list.
        self._kept: tuple[Hashable, int, Size] | None = None

    def show_files(self, files: Iterable[ChangedFile]) -> None:
        before, self._files = self._files, tuple(files)
        if [file.path for file in before] != [file.path for file in self._files]:
            self.shift = 0
        self.rebuild()
        if self._return_to is not None:
            self.go_to(self._return_to)
            self._return_to = None

    def drop_files(self) -> None:
        """Free the memory of the rows while the list is not visible. The line under the cursor is remembered.
        When files are shown again, the cursor goes to that line, if they have it."""
        if self._files:
            self._return_to, key = None, self.key
            self.show_files(())
            self._return_to = key

    def on_unmount(self) -> None:
        # Textual calls that of the base class by itself.
        self._files = ()

    @property
    def files(self) -> tuple[ChangedFile, ...]:
        return self._files

    def learn(self, path: str, colours: FileColours) -> None:
        """Take over the colours of a file, and paint its lines with them."""
        self.colours[path] = colours
        self.colours.move_to_end(path)
        while len(self.colours) > COLOURED:
            self.colours.popitem(last=False)
        self.refresh()

    def show_notes(self, notes: Callable[[Rooms], Notes]) -> None:
        """Show notes below lines of the files. `notes`: returns the notes. It is called with the columns in
        which they are shown."""
        self._notes = notes
        self.rebuild()

    def rebuild(self) -> None:
        """Make the rows again. The cursor stays on its line."""
        half = (self.room - 3) // 2 if self.split and self.room >= BESIDE else 0
        look = LineColours(self._tints, self.colours)
        patches = Patches(self._files, half, blanks=self.blanks, seen=self.seen, heads=self.heads, look=look)
        notes = self._notes(self._rooms(half, patches)) if self._notes is not None else {}
        self._patches, self._half_room = patches, half - patches.digits - 2
        notes = {spot: [note._replace(fixed=len(note.left)) for note in rows] for spot, rows in notes.items()}
        if half:
            notes = {spot: [_beside(note, half, spot.side) for note in rows] for spot, rows in notes.items()}
        self.show(NotedRows(patches, notes) if notes else patches)
        if self._anchor is not None:
            place = self._place_of(self._anchor)
            self._begun = self.cursor if place is None else place
        self._keep_note()

    def render_line(self, y: int) -> Strip:
        self._patches.shift = self.shift  # texts beside one another are scrolled where they stand
        return super().render_line(y)

    def _texts_beside(self, index: int) -> list[str]:
        """Returns the texts of the old and of the new line in a row that has them side by side. Returns []
        for any other row."""
        key = self.rows[index].key
        if not isinstance(key, Key) or key.kind != "both" or not isinstance(self.rows, (Patches, NotedRows)):
            return []
        return [safe(text) for text in self.rows.text_of(index).split("\n")]

    def _overhang(self, index: int) -> int:
        texts = self._texts_beside(index)
        if not texts:
            return super()._overhang(index)
        return max(0, max(map(cell_len, texts)) - self._half_room)

    def _place_found(self) -> tuple[int, int, int] | None:
        texts = self._texts_beside(self.cursor) if self.item is not None else []
        places = (found_columns(text, self._filter.casefold(), self._half_room - 1) for text in texts)
        return next(filter(None, places), None) if texts else super()._place_found()

    def _tints(self) -> Tints | None:
        tints: Tints | None = getattr(self.app, "tints", None)
        return tints

    def _rooms(self, half: int, patches: Patches) -> Rooms:
        """Returns the columns of notes. They are aligned with the text of the lines that the notes are
        about."""
        if half:
            numbers, width = patches.digits + 1, max(12, half - patches.digits - 2)
            return Rooms(Room(numbers, width), Room(half + 3 + numbers, width))
        numbers = max((patches.numbers(file) for file in self._files), default=0) + 1
        both = Room(numbers, max(12, min(NOTE_MAX, self.room - numbers - 1)))
        return Rooms(both, both)

    def on_resize(self) -> None:
        if self.split or self._notes is not None:
            self.rebuild()
        super().on_resize()

    def show_note(self) -> None:
        """Scroll so that all rows of the note that begins at the cursor are visible, with lines of the file
        above it. It stays so while it grows, and when the list gets another size."""
        rows, first = self.rows, self.cursor
        last = rows.end_of_note(first) if isinstance(rows, NotedRows) else first
        self._kept = self.key, last - first, self.size
        self.go_to_block(first, last, CONTEXT)

    def _keep_note(self) -> None:
        before, rows = self._kept, self.rows
        if before is None or before[0] != self.key or not isinstance(rows, NotedRows):
            self._kept = None
        elif before[1:] != (rows.end_of_note(self.cursor) - self.cursor, self.size):
            self.show_note()

    def toggle_split(self) -> None:
        self.split = not self.split
        self.rebuild()

    def toggle_blanks(self) -> None:
        self.blanks = not self.blanks
        self.rebuild()

    def toggle_seen(self) -> None:
        """Fold or unfold the lines of the file under the cursor."""
        if isinstance(self.key, Key):
            path = self.key.path
            self.seen.symmetric_difference_update({path})
            self.rebuild()
            self.go_to(Key(path, "file", 0, 0))

    # --- selected lines

    def select(self) -> bool:
        """Begin a selection of lines at the cursor. If there is a selection already, end it. Returns whether
        a selection has begun."""
        self._anchor = self.key if self._anchor is None and isinstance(self.key, Key) else None
        self._begun = self.cursor
        self.refresh()
        self.post_message(self.Moved(self))  # what the frame says is about the lines that are selected
        return self._anchor is not None

    @property
    def selects(self) -> bool:
        return self._anchor is not None

    def go(self, index: int, step: int = 1) -> None:
        super().go(index, step)
        if self._anchor is not None:
            self.refresh()

    def go_to_change(self, begin: int = 0) -> bool:
        """Go to the first changed line from row `begin` on. Returns False if no line is changed there."""
        for index in range(begin, len(self.rows)):
            key = self.rows[index].key
            if isinstance(key, Key) and key.kind in ("add", "delete", "both"):
                self.go(index)
                return True
        return False

    def cover(self, lines: int) -> None:
        """Scroll so that all selected lines are above the last `lines` lines, because a card covers these."""
        super().cover(lines)
        first, last = self._find_selection()
        if lines and first < last:
            height = max(1, self.fits - lines)
            self.top = max(0, min(max(self.top, last - height + 1), first))
            self.refresh()

    def highlights(self, index: int) -> bool:
        first, last = self._find_selection()
        return first <= index <= last

    def _find_selection(self) -> tuple[int, int]:
        """Returns (first row, last row) of the selection. The selection ends at the cursor."""
        begun = self.cursor if self._anchor is None else self._begun
        return min(begun, self.cursor), max(begun, self.cursor)

    def span(self, *, with_text: bool = True) -> Span | str:
        """Returns the selected lines of a hunk. Without a selection, returns the line under the cursor. If
        any of the lines is on the new side, only those are returned, otherwise those on the old side. If the
        lines are in several hunks, or there are none, returns a sentence that says so."""
        first, last = self._find_selection()
        # A file whose text is the same has no rows.
        keys = [self.rows[index].key for index in range(first, min(last + 1, len(self.rows)))]
        lines = [key for key in keys if isinstance(key, Key) and key.kind not in ("file", "hunk")]
        if not lines:
            return "go to a line first"
        if any(isinstance(key, Key) and key.kind in ("file", "hunk") for key in keys):
            return "select lines of one hunk"
        side: Literal["old", "new"] = "new" if any(key.new for key in lines) else "old"
        numbers = [number for key in lines if (number := key.new if side == "new" else key.old)]
        start, end, path = min(numbers), max(numbers), lines[0].path
        text = "\n".join(self.texts(path, side, start, end)) if with_text else ""
        return Span(path, side, start, end, text)

    def texts(self, path: str, side: str, start: int, end: int) -> list[str]:
        """Returns the texts of these lines of a file, as far as its changes contain them."""
        file = next(file for file in self._files if file.path == path)
        return [
            line.text for line in texts(file) if start <= (line.new if side == "new" else line.old) <= end
        ]

    @property
    def sought(self) -> str:
        """The text that the search looks for, in lower case."""
        return self._filter.casefold()

    def text_at(self, index: int) -> str:
        """Returns the text of the row `index` in lower case. Searches look for the typed words in it."""
        rows = self.rows
        return rows.text_of(index).casefold() if isinstance(rows, (Patches, NotedRows)) and len(rows) else ""

    @property
    def hunk_position(self) -> tuple[int, int]:
        """The number of the hunk under the cursor, and the number of hunks in all."""
        places = self.rows.marks["hunk"] if isinstance(self.rows, (Patches, NotedRows)) else []
        return bisect_right(places, self.cursor), len(places)

    def jump(self, kind: str, step: int) -> bool:
        """Go to the next file or hunk, or with `step` −1 to the previous one. `kind`: file or hunk. Returns
        False if there is none."""
        places = self.rows.marks[kind] if isinstance(self.rows, (Patches, NotedRows)) else []
        at = bisect_right(places, self.cursor) if step > 0 else bisect_left(places, self.cursor) - 1
        if not 0 <= at < len(places):
            return False
        self.go(places[at], step)
        return True


def _beside(note: Item, half: int, side: Literal["old", "new"]) -> Item:
    """Returns the row of a note in two columns of `half` each. `side`: the one that it is about."""
    parts = divide_note(note.left, half, side)
    return note._replace(left=parts, fixed=len(parts))
