"""A widget for a text that several people edit at once. Edits of the user are passed on as splices, and edits
of others arrive as changes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from time import monotonic
from typing import Any, ClassVar, NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.document._document import Document, EditResult, Location, Selection
from textual.document._document_navigator import DocumentNavigator
from textual.document._edit import Edit
from textual.document._wrapped_document import WrappedDocument
from textual.events import Key
from textual.geometry import Size
from textual.strip import Strip
from textual.timer import Timer
from textual.widgets import TextArea

from localstore.core.lane.crdt import Delta
from tui.highlight import ColouredText, colour_text
from tui.text import HIDDEN
from tui.theme import THEMES
from tui.widgets.colours import Colours
from tui.widgets.typed import dress

FRESH = "▎"  # before a line that somebody else has just changed
FRESH_SECONDS = 4.0  # that the sign stays
GOES_ON = "›"  # in the last column of a line that is wider than the screen
PASTE_BYTES = 256 * 1024  # that are pasted at once
COLOUR_AFTER = 0.7  # seconds without a change, after which the whole text is coloured again
TAKEN = frozenset(("ctrl+a", "ctrl+f", "f6", "f7"))  # by screen, by find, by the actions of the screen
Cursors = dict[int, list[tuple[int | None, str, str]]]
_ENDS = re.compile("\r\n|\r|\n")
_SHOWN: Mapping[int, str] = {
    **{code: chr(0x2400 + code) for code in range(32) if code != 9},
    127: "\u2421",
    **dict.fromkeys([*range(0x80, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F)], "\ufffd"),
    **dict.fromkeys([*range(0x2066, 0x206A), 0xFEFF], "\ufffd"),
}
"""Characters that could steer a terminal, each as one that stands for it."""


class _Lines(Document):
    """A document of Textual whose lines end only at line feeds. So positions in it correspond to positions in
    the bytes of the text."""

    def __init__(self, text: str) -> None:
        super().__init__("")
        self._lines = text.split("\n")

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        (row, column), (last, until) = sorted((start, end))
        replaced = self.get_text_range((row, column), (last, until))
        put = text.split("\n")
        put[0] = self._lines[row][:column] + put[0]
        at = len(put[-1])
        put[-1] += self._lines[last][until:]
        self._lines[row : last + 1] = put
        return EditResult((row + len(put) - 1, at), replaced)


class _Rows(Sequence[Any]):
    """A sequence with an item for each line of a document. `of`: makes an item from the number of its
    line."""

    def __init__(self, lines: Document, of: Callable[[int], Any]) -> None:
        self._lines, self._of = lines, of

    def __len__(self) -> int:
        return self._lines.line_count

    def __getitem__(self, index: Any, /) -> Any:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._of(index)


class _Flat(WrappedDocument):
    """A wrapped document of Textual in which each line is exactly one row. Textual's own class stores the
    rows by number, and would have to make them again after each key, which takes long in a long text."""

    def wrap(self, width: int, tab_width: int | None = None) -> None:
        lines: Any = self.document
        rows: Any = _Rows(lines, lambda row: (row, 0))
        self._offset_to_line_info = rows
        rows = _Rows(lines, lambda row: [row])
        self._line_index_to_offsets = rows
        rows = _Rows(lines, lambda row: [])
        self._wrap_offsets = self._tab_width_cache = rows

    @property
    def height(self) -> int:
        return len(self._offset_to_line_info)

    def wrap_range(self, start: Location, old_end: Location, new_end: Location) -> None:
        """Does nothing, because each line is one row."""


class Use(NamedTuple):
    """The functions of the screen that the text calls. `splice`: called at each edit of the user, with the
    offset in bytes, how many bytes are deleted, and the bytes that are inserted. `undo`, `redo`: undo the
    user's own last edit, or redo it, and return the changes. `leave`, `find`, `line`: leave the screen,
    search the text, go to a line. `copy`: puts a text on the clipboard. `say`: shows a message. `ahead`:
    keeps a key back for a screen that is about to open, and returns whether it did so. `act`: carries out a
    key that belongs to the screen, and returns whether it did so."""

    splice: Callable[[int, int, bytes], object]
    undo: Callable[[], list[Delta]]
    redo: Callable[[], list[Delta]]
    leave: Callable[[], None]
    find: Callable[[], None]
    line: Callable[[], None]
    copy: Callable[[str], None]
    say: Callable[[str], None]
    ahead: Callable[[Key], bool]
    act: Callable[[Key], bool]


def _bindings() -> list[Binding]:
    """Returns the key bindings of Textual's text area, without the keys that the screen uses itself."""
    bindings: list[Binding] = []
    for binding in TextArea.BINDINGS:
        assert isinstance(binding, Binding)  # noqa: S101 - of the pinned library
        keys = ",".join(key for key in binding.key.split(",") if key not in TAKEN)
        if keys:
            bindings.append(replace(binding, key=keys))
    own = {"ctrl+f": "find", "ctrl+g": "line", "ctrl+home": "first", "ctrl+end": "last"}
    return [*bindings, *(Binding(key, action, action, show=False) for key, action in own.items())]


_BINDINGS = _bindings()
ACTIONS = {key: binding.action for binding in _BINDINGS for key in binding.key.split(",")}


class TextEditor(TextArea, inherit_bindings=False):
    """The widget with a text that the user edits. `cursors`: the cursors of others, by line (from 0). Each is
    (column from 0 or None, name, role)."""

    BINDINGS: ClassVar[list[BindingType]] = [*_BINDINGS]
    DEFAULT_CSS = """
    TextEditor { border: none; padding: 0; height: 1fr; background: ansi_default; color: ansi_default;
              scrollbar-size: 0 0; }
    TextEditor:focus { border: none; }
    """

    def __init__(self, path: str, use: Use) -> None:
        self.cursors: Cursors = {}
        self._fresh: dict[int, float] = {}  # lines that others have just changed, and until when that shows
        self._fades: Timer | None = None
        self._sizes = [0]  # bytes of each line without its end
        self._widest = 0
        self._ending = "\n"
        self._use, self._path = use, path
        self._colours = Colours(path)
        self._recolour: Timer | None = None
        super().__init__(
            soft_wrap=False, tab_behavior="indent", show_line_numbers=True, highlight_cursor_line=False
        )
        self.cursor_blink = False
        self.match_cursor_bracket = False
        self.read_only = True  # until the text is there

    def on_mount(self) -> None:
        dress(self, getattr(self.app, "colours", "terminal"))

    def _set_document(self, text: str, language: str | None) -> None:
        super()._set_document("", None)
        self.document = _Lines(text)
        self.wrapped_document = _Flat(self.document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._sizes = [_bytes(line) for line in self.document.lines]
        self._widest = max(map(_cells, self.document.lines))
        self._rewrap_and_refresh_virtual_size()

    def find_matching_bracket(self, bracket: str, search_from: Location) -> Location | None:
        """Always returns None. Looking for the partner of a bracket would search the whole text at each
        key."""
        return None

    def begin(self, text: str) -> None:
        """Show the text and let the user edit it."""
        self._ending = "\r\n" if "\r\n" in text else "\n"
        self.indent_type = "tabs" if "\n\t" in text else "spaces"
        self.load_text(text)
        self.read_only = False
        self._colour()

    # --- changes

    def edit(self, edit: Edit) -> EditResult:
        """Apply an edit of the user to the text, and pass it on to the screen."""
        top, bottom = self._range(edit)
        text = _ENDS.sub(self._ending, edit.text).replace("\0", "").encode("utf-8", "replace")
        if len(text) > PASTE_BYTES:
            self._use.say("that is too much to paste at once: 256 KiB at most")
            text, bottom = b"", top
        start, end = self._offset(top), self._offset(bottom)
        if start == end and not text:
            return EditResult(edit.top, "")
        self._use.splice(start, end - start, text)
        return self._change(Edit(text.decode(), top, bottom, edit.maintain_selection_offset))

    def _range(self, edit: Edit) -> tuple[Location, Location]:
        """Returns (start, end) of an edit as positions in the text. A carriage return before a line feed
        counts as part of the line break."""
        top, bottom = self._before_end(edit.top), self._before_end(edit.bottom)
        if top == bottom and edit.top != edit.bottom and bottom[0] + 1 < len(self._sizes):
            bottom = (bottom[0] + 1, 0)
        return top, bottom

    def _before_end(self, at: Location) -> Location:
        row, column = at
        if row >= len(self._sizes):  # the line after the last, when that one is deleted
            return self.document.end
        line = self.document.get_line(row)
        return (row, column - 1) if column == len(line) and line.endswith("\r") else at

    def take(self, deltas: Sequence[Delta], move: bool = False) -> None:
        """Apply changes to the text that others have made, or that an undo makes. `move`: move the cursor to
        the changes."""
        for delta in deltas:
            offset = 0
            for step in delta:
                if "retain" in step:
                    offset += step["retain"]
                    continue
                text = step.get("insert", "")
                start = self._location(offset)
                end = self._location(offset + step["delete"]) if "delete" in step else start
                result = self._change(Edit(text, start, end, maintain_selection_offset=True))
                offset += len(text.encode())
                if move:
                    self.move_cursor(result.end_location)
                else:
                    self._mark_fresh(start, result.end_location, text)

    def _mark_fresh(self, start: Location, end: Location, text: str) -> None:
        """Mark the lines that somebody else has changed, for FRESH_SECONDS. A line break that is inserted at
        the end of a line, or at its beginning, does not change that line."""
        first, last = start[0], end[0]
        if text.startswith(("\n", "\r\n")) and first < last and start[1] > 0:
            first += 1
        if text.endswith("\n") and first < last:
            last -= 1
        self._fresh.update(dict.fromkeys(range(first, last + 1), monotonic() + FRESH_SECONDS))
        if self._fades is None:
            self._fades = self.set_timer(FRESH_SECONDS, self._fade)
        self.refresh()

    def _fade(self) -> None:
        """Remove the marks whose time is over. A timer runs only as long as there are marks."""
        now = monotonic()
        self._fresh = {row: until for row, until in self._fresh.items() if until > now}
        rest = min(self._fresh.values(), default=now) - now
        self._fades = self.set_timer(rest, self._fade) if self._fresh else None
        self.refresh()

    def _change(self, edit: Edit) -> EditResult:
        (row, _), (last, _) = edit.top, edit.bottom
        result = super().edit(edit)
        self.history.clear()  # undo goes by what each has written, not by places
        lines = [self.document.get_line(at) for at in range(row, result.end_location[0] + 1)]
        self._sizes[row : last + 1] = [_bytes(line) for line in lines]
        self._widest = max(self._widest, *map(_cells, lines))
        self._colours.replace_lines(row, last, len(lines))
        if self._fresh and len(lines) != last + 1 - row:
            moved = len(lines) - (last + 1 - row)
            self._fresh = {(at + moved if at > last else min(at, row)): t for at, t in self._fresh.items()}
        self._colour_later()
        self._refresh_size()
        return result

    def undo(self) -> None:
        if not self.read_only:
            self.take(self._use.undo(), move=True)

    def redo(self) -> None:
        if not self.read_only:
            self.take(self._use.redo(), move=True)

    def _offset(self, at: Location) -> int:
        row, column = at
        return sum(self._sizes[:row]) + row + len(self.document.get_line(row)[:column].encode())

    def _location(self, offset: int) -> Location:
        begins = list(accumulate((size + 1 for size in self._sizes), initial=0))
        row = min(bisect_right(begins, offset) - 1, len(self._sizes) - 1)
        before = self.document.get_line(row).encode()[: offset - begins[row]]
        return row, len(before.decode(errors="ignore"))

    # --- what is shown

    def show_cursors(self, cursors: Cursors) -> None:
        """Show the cursors of others."""
        if cursors != self.cursors:
            self.cursors = cursors
            self._line_cache.clear()
            self.refresh()

    def _build_highlight_map(self) -> None:
        """Does nothing, because this widget does not colour its text as Textual does. The roles come from
        `Colours`."""

    def _refresh_size(self) -> None:
        tabs = self.indent_width  # a line of tabs is wider than its characters
        self.virtual_size = Size(self._widest + self.gutter_width + 1 + 4 * tabs, len(self._sizes))
        self._refresh_scrollbars()

    def get_line(self, line_index: int) -> Text:
        line = self.document.get_line(line_index)
        text = Text(line.removesuffix("\r").translate(_SHOWN), end="", no_wrap=True)
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        for start, end, role in self._colours.spans(line_index, line):
            if role != "text":
                text.stylize(styles[role], start, end)
        there = self.cursors.get(line_index, ())
        for column, _, role in there:
            if column is not None:
                text.append(" " * (column + 1 - len(text)))
                text.stylize(styles[role] + Style(reverse=True), column, column + 1)
        for _, name, role in there:
            text.append(f"  ◂ {name}", styles[role])
        return text

    def render_line(self, y: int) -> Strip:
        at = self.scroll_offset.y + y
        end = self.selection.end
        chosen: Any = self.selection if self.selection.contains_line(at) else end[0] == at
        line = self.document.get_line(at) if at < self.document.line_count else None
        key: Any = (self.size, self.scroll_offset.x, at, chosen, end if end[0] == at else None)
        fresh = at in self._fresh
        key = (*key, fresh, self.has_focus, self.gutter_width, self.virtual_size.width, line)
        strip = self._line_cache.get(key)
        if strip is None:
            strip = self._render_line(y)
            if line is not None and end[0] != at:
                strip = self._with_sign(strip) if self._goes_on(line) else strip
                strip = self._sign_left(strip, line)
            strip = self._line_cache[key] = self._with_mark(strip) if fresh else strip
        return strip

    def _goes_on(self, line: str) -> bool:
        """Returns whether the line has characters to the right of the last visible column."""
        cells = _cells(line.removesuffix("\r").expandtabs(self.indent_width))
        return cells - self.scroll_offset.x > self.size.width - self.gutter_width

    def _with_sign(self, strip: Strip) -> Strip:
        """Returns the row with a sign in its last column. The sign says that the line goes on to the
        right."""
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        return Strip.join([strip.crop(0, self.size.width - 1), Strip([Segment(GOES_ON, styles["dim"])], 1)])

    def _sign_left(self, strip: Strip, line: str) -> Strip:
        """Returns the row with a sign in the first column of its text, if more than blanks of the line are
        hidden at the left. Otherwise returns the row as it is."""
        hidden, at = self.scroll_offset.x, self.gutter_width
        if not hidden or not line.expandtabs(self.indent_width)[:hidden].strip():
            return strip
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        return Strip.join([strip.crop(0, at), Strip([Segment(HIDDEN, styles["dim"])], 1), strip.crop(at + 1)])

    def _with_mark(self, strip: Strip) -> Strip:
        """Returns the row with a sign between the number of the line and its text. The sign says that
        somebody else has just changed the line."""
        styles, at = THEMES[getattr(self.app, "colours", "terminal")], self.gutter_width - 1
        return Strip.join(
            [strip.crop(0, at), Strip([Segment(FRESH, styles["person"])], 1), strip.crop(at + 1)]
        )

    async def _on_key(self, event: Key) -> None:
        """Handle a key at once. Textual would look up the binding of a key only after the key has reached the
        app. By then the next letter would be in the text."""
        if event.key == "escape":
            self._use.leave()
        elif self._use.ahead(event) or self._use.act(event):
            pass
        elif event.key in ACTIONS:
            await self.run_action(ACTIONS[event.key])
        else:
            return
        event.stop()
        event.prevent_default()

    def action_find(self) -> None:
        self._use.find()

    def action_line(self) -> None:
        self._use.line()

    def action_first(self) -> None:
        self.move_cursor((0, 0))

    def action_last(self) -> None:
        self.move_cursor(self.document.end)

    def action_copy(self) -> None:
        if self.selected_text:
            self._use.copy(self.selected_text)
        else:
            self._use.say("select with shift and arrows first; esc leaves")

    def action_cut(self) -> None:
        chosen = self.selected_text
        if chosen and not self.read_only:
            self._use.copy(chosen)
            self.delete(*self.selection)

    def seek(self, word: str, step: int) -> bool:
        """Select the next occurrence of the word, or with `step` −1 the previous one. At the end of the text,
        the search continues at its beginning. Case matters if the word contains capital letters. Returns
        False if the word does not occur."""
        fold = (lambda line: line) if word != word.lower() else lower_letters
        (row, column), end = sorted(self.selection)
        lines, count = self.document.lines, self.document.line_count
        for away in range(count + 1):
            at = (row + step * away) % count
            line = fold(lines[at])
            if away == 0:
                start = line.find(word, end[1] if end[0] == row and end != (row, column) else column)
                start = start if step > 0 else line.rfind(word, 0, column)
            else:
                start = line.find(word) if step > 0 else line.rfind(word)
            if start >= 0:
                self.selection = Selection((at, start), (at, start + len(word)))
                return True
        return False

    # --- colours

    def _colour_later(self) -> None:
        if self._recolour is not None:
            self._recolour.stop()
        self._recolour = self.set_timer(COLOUR_AFTER, self._colour)

    def _colour(self) -> None:
        """Colour the whole text on a thread."""
        text, version = self.text, self._colours.version

        def work() -> None:
            whole = colour_text(text, self._path)
            if whole is not None:
                self.app.call_from_thread(self._take_colours, whole, version)

        self.app.run_worker(work, thread=True, group="highlight", exclusive=True, exit_on_error=False)

    def _take_colours(self, whole: ColouredText, version: int) -> None:
        if self.is_attached and self._colours.learn(whole, version):
            self._line_cache.clear()
            self.refresh()


def lower_letters(line: str) -> str:
    """Returns a line in lower case, with each character at its place. A character whose lower case is longer
    stays as it is."""
    lower = line.lower()
    if len(lower) == len(line):
        return lower
    return "".join(each if len(each.lower()) > 1 else each.lower() for each in line)


def _bytes(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode())


def _cells(line: str) -> int:
    return len(line) if line.isascii() else cell_len(line)
