"""The base of tabs and screens that have a list and, if there is room, a preview of the row under the
cursor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.message import Message
from textual.timer import Timer

from tui.actions import Action
from tui.screens.base import FACTS_BESIDE, THREE_PANES, TWO_PANES, Base
from tui.screens.facts import FRAME, Facts, wrap_facts
from tui.screens.view import View
from tui.text import Part, safe
from tui.texts import Texts, beginning, item
from tui.theme import THEMES, css_colour
from tui.widgets.framed import Framed, draw_frame
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.strips import strip

if TYPE_CHECKING:
    from textual.geometry import Size
    from textual.strip import Strip
    from textual.widget import Widget

    from tui.asked import AskedApp
    from tui.markdown.words import Row

    Mixed = Widget
else:
    Mixed = object  # Textual takes the styles of the first base that is a widget

REST = 0.12  # seconds that the cursor rests before a preview is asked for
LEAST, MOST, STEP = 25, 75, 8  # hundredths of the width that a list takes, and of one step
SHARE_OF_THREE = 34  # the same, beside a preview and facts
FACTS_WIDTH = 36  # columns of the facts, with their frame
HIGH = 20  # lines of a terminal from which lines below a list say what its rows mean
NARROW = 60  # columns below which a row has what matters most only

LINES, SIZE = 100, 4 * 1024  # lines and characters of a text that are previewed
CUT: tuple[Part, ...] = (("… the rest: enter", "dim"),)

SPLIT_ACTIONS = (
    Action("preview", ("P",), "hide or show the preview"),
    Action("narrower", ("less_than_sign",), "narrower list"),
    Action("wider", ("greater_than_sign",), "wider list"),
    Action("zoom", ("Z",), "the preview alone"),
)
OF_PREVIEW = frozenset(action.id for action in SPLIT_ACTIONS)
PANE = Action("pane", ("tab",), "next link or pane", footer=True)


class Preview(Lines):
    """The list that shows the preview of a row. It has a visible cursor while it has the focus."""

    DEFAULT_CSS = "Preview { padding: 0 1; }"

    class Scrolled(Message):
        """Posted when the mouse wheel has scrolled the preview."""

    beside: Lines | None = None  # the list whose row is previewed

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)

    def choose(self) -> None:
        """Follow the link under the cursor. If there is none, choose the row of the list that is
        previewed."""
        if self.target or self.beside is None:
            super().choose()
        else:
            self.beside.choose()

    def scroll_rows(self, by: int) -> None:
        super().scroll_rows(by)
        self.post_message(self.Scrolled())


class ExplainedRow(Framed):
    """A line with a title, and below it a few rows that say more about the row under the cursor. It is no
    list, so that it never gets the focus."""

    DEFAULT_CSS = "ExplainedRow { padding: 0 1; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: tuple[tuple[Part, ...], ...] = ()

    def put(self, rows: Sequence[tuple[Part, ...]]) -> None:
        """Show these rows, as far as they fit."""
        self._rows = tuple(rows)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, styles = self.size.width, THEMES[getattr(self.app, "colours", "terminal")]
        return strip(self._rows[y] if y < len(self._rows) else (), width, styles)


class Panes(Mixed):
    """A tab or screen with two panes: a list, and the preview of one of its rows. Subclasses set `LIST`, the
    id of the list widget. They define `preview_of(key)`, which requests the data of the preview and then
    calls `show_preview`. Their `paint` ends with a call of `rest`."""

    LIST = ""
    TWO_LINES = False  # whether rows have a second line on a wide screen
    TWO_LINES_FROM = THREE_PANES  # columns from which they have it
    LINKED = False  # whether rows of the list may have links
    SHARE = 42  # hundredths of the width that the list takes
    FACTS = False  # whether what is previewed has facts, which stand beside it on a very wide screen
    BELOW = 0  # lines below the list that say what the row means, where there is no room for a preview
    RULED = False  # whether title and position stand in a line above the list if it has no frame
    EMPTY = ""  # instead of rows
    WAITING = ""  # the same, until the first answer

    _hides = _zooms = False
    _had_row: bool | None = None  # whether the line of keys has those about a row
    _walked = False  # whether the preview is walked or scrolled; only then it needs rows beyond its height
    _stale = False  # whether what is previewed may have changed
    _timer: Timer | None = None
    _terminal: Size | None = None  # the size of the terminal when the panes were made
    _previewed: Hashable | None = None
    _made: tuple[object, ...] = ()  # rows and facts of the preview, and its size
    _lacks_facts = False  # whether what is previewed has no facts, so that the preview takes their room
    texts: Texts | None

    def two_panes(self) -> ComposeResult:
        """Returns the widgets of both panes."""
        self.texts = Texts(self, self._again)
        with Horizontal(classes="row"):
            rows = Lines(id=self.LIST, linked=self.LINKED, empty=self.EMPTY, waiting=self.WAITING)
            preview = Preview(marked=False, linked=True, id="preview")
            preview.beside = rows
            yield rows
            yield preview
            if self.FACTS:
                facts = Facts(marked=False, id="facts")
                facts.can_focus = facts.display = False
                yield facts
        if self.BELOW:
            yield ExplainedRow(id="below")

    def on_mount(self) -> None:
        self.place_panes()

    def on_resize(self) -> None:
        self.place_panes()
        size = self.app.size
        if size == self._terminal:
            return  # a message takes lines for a moment
        self._terminal = size
        self._paint_rows()
        if self.previews or self.explains_below:
            self.call_after_refresh(self._again)  # its width is that of the pane

    @property
    def front(self) -> Base:
        """The screen that contains the panes."""
        raise NotImplementedError

    @property
    def listed(self) -> Lines:
        return self.query_one(f"#{self.LIST}", Lines)

    @property
    def preview(self) -> Lines:
        return self.query_one("#preview", Lines)

    @property
    def previews(self) -> bool:
        """Whether the preview is on the screen."""
        return self.app.size.width >= TWO_PANES and not self._hides

    @property
    def explains_below(self) -> bool:
        """Whether lines below the list say what the row under the cursor means, because the terminal is too
        narrow for a preview."""
        size = self.app.size
        return bool(self.BELOW) and size.width < TWO_PANES and size.height >= HIGH

    @property
    def facts_shown(self) -> bool:
        """Whether a column of facts is shown beside the preview."""
        return self.FACTS and self.previews and self.app.size.width >= FACTS_BESIDE

    @property
    def two_lines(self) -> bool:
        """Whether each row of the list has two lines."""
        return self.TWO_LINES and self.previews and self.app.size.width >= self.TWO_LINES_FROM

    @property
    def narrow(self) -> bool:
        """Whether a row of the list has room for little more than a title."""
        return self.list_width < NARROW

    @property
    def list_width(self) -> int:
        """The number of columns of the list. It is known even before the list is laid out."""
        width = self.app.size.width
        return width * self._share // 100 - 2 if self.previews and not self._zooms else width

    def pane_label(self) -> str:
        """Returns where the key tab leads from the list that has the focus, for the line of keys."""
        if not self.previews:
            return ""
        return "preview" if self.front.lines is self.listed else "next link or list"

    # --- what a subclass gives

    def preview_of(self, key: Hashable) -> None:
        """Request the data for the preview of the row with this key. Show them with `show_preview`."""
        raise NotImplementedError

    def first_steps(self) -> tuple[str, Sequence[tuple[Part, ...]]]:
        """Returns (title, rows) for the preview when the list has no rows."""
        return "", ()

    def make_title(self) -> tuple[Part, ...]:
        """Returns the title of the list, as parts."""
        raise NotImplementedError

    def title_hint(self) -> tuple[Part, ...]:
        """Returns parts after the title of the list: a key, and what it does. Returns () for none."""
        return ()

    def paint(self) -> None:
        """Make the rows of the list for its present size. If there are no data, the old rows stay."""

    # --- panes

    def place_panes(self) -> None:
        """Show the panes that fit: only one, or both with frames."""
        rows, preview = self.listed, self.preview
        preview.display = self.previews
        rows.display = not (self.previews and self._zooms)
        rows.stand(2 if self.two_lines else 1)
        for lines in (rows, preview):
            focus = lines.has_focus or (lines is rows and not preview.has_focus)
            if self.previews:
                draw_frame(lines, "accent" if focus else "line")
            else:
                lines.styles.border = None
            if self.RULED and not self.previews and lines is rows:
                lines.styles.border_top = ("round", css_colour(self._svc.colours, "line"))
        rows.styles.width = f"{self._share}%" if self.previews else "1fr"
        for below in self.query(ExplainedRow):
            below.display = self.explains_below
            below.styles.height = self.BELOW + 1
            below.styles.border_top = ("round", css_colour(self._svc.colours, "line"))
        for facts in self.query(Facts):
            facts.display = self.facts_shown and not self._lacks_facts
            facts.styles.width = FACTS_WIDTH
            draw_frame(facts, "line")
            facts.border_title = "facts"
        self._say_where()

    @property
    def _svc(self) -> AskedApp:
        return self.front.svc

    @property
    def _share(self) -> int:
        return self._svc.shares.get(self.LIST, SHARE_OF_THREE if self.facts_shown else self.SHARE)

    def _paint_rows(self) -> None:
        """Make the rows of the list again, because the room for them has changed."""
        if len(self.listed.rows):
            self.paint()

    def on_descendant_focus(self) -> None:
        self._focus_moved()

    def on_descendant_blur(self) -> None:
        self._focus_moved()

    def _focus_moved(self) -> None:
        if self.query("#preview"):
            self.place_panes()
            self.listed.refresh()  # its cursor rests while the preview has the focus
            if self.preview.has_focus:
                self._walk()

    def on_preview_scrolled(self) -> None:
        self._walk()

    def _walk(self) -> None:
        """Make all rows of the preview, because the cursor or the mouse wheel enters it. Until then, only the
        rows that fit into the pane are made."""
        if not self._walked:
            self._walked = True
            self._again()

    def _say_where(self) -> None:
        """Write the title of the list and the position of its cursor into the frame."""
        rows = self.listed
        title, sought = "".join(text for text, _ in self.make_title()), safe(rows.sought)
        if sought and sought not in title:
            title += f" · {sought}"
        if self.previews:
            rows.name_frame(title, rows.position, self.title_hint())
        elif self.RULED:
            rows.name_rule(title, rows.position, self.app.size.width, self.title_hint())

    # --- the preview

    def on_lines_moved(self, event: Lines.Moved) -> None:
        if event.lines.id == self.LIST:
            self.rest()

    def rest(self) -> None:
        """Called when the cursor or the rows of the list have changed. If the cursor stays on a row for a
        moment, the preview of that row is shown."""
        self.front.show_keys()
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._say_where()
        if (self.listed.key is not None) is not self._had_row:
            self._had_row = self.listed.key is not None
            self.front.show_frame()
        if self.listed.key != self._previewed:
            self._walked = False
        shows = self.previews or self.explains_below
        if shows and (self._stale or self.listed.key is None or self.listed.key != self._previewed):
            self._timer = self.set_timer(REST, self._again)

    def _again(self) -> None:
        if (
            not self.is_attached
            or not (self.previews or self.explains_below)
            or not self.display
            or self._svc.screen is not self.front
        ):
            return
        key, self._stale = self.listed.key, False
        if key is None and self.explains_below:
            self._show_below(key, "", ())
        elif key is None:
            self._previewed = None
            hides = self.listed.filtered or self.listed.waiting
            title, rows = ("", ()) if hides else self.first_steps()
            self.preview.name_frame(title, "")
            self.preview.show(sequence([Item(None, row) for row in rows]))
            self._show_facts(())
        else:
            self.preview_of(key)

    def renew(self) -> None:
        """Make the preview again, because its content may have changed."""
        self._stale = True
        if self.query("#preview"):
            self.rest()

    def show_preview(
        self,
        key: Hashable,
        title: str,
        rows: Sequence[Row | tuple[Part, ...]],
        facts: Sequence[Item] = (),
    ) -> None:
        """Show these rows and facts as the preview of the row with this key. Does nothing if the cursor has
        left that row."""
        if not self.is_attached or key != self.listed.key:
            return
        if self.explains_below:
            self._show_below(key, title, rows)
        if not self.previews:
            return
        preview = self.preview
        fresh, self._previewed = key != self._previewed, key
        preview.name_frame(title, "")
        content = (rows, facts, preview.size)
        if not fresh and content == self._made:
            return  # the server's answer is mostly what was known
        self._made = content
        preview.show(sequence([item(place, row) for place, row in enumerate(rows)]))
        self._show_facts(facts)
        if fresh:
            preview.shift = 0
            preview.go(0, -1)

    def _show_below(self, key: Hashable | None, title: str, rows: Sequence[Row | tuple[Part, ...]]) -> None:
        """Show these rows below the list, as far as they fit."""
        below = self.query_one(ExplainedRow)
        self._previewed = key
        content = (tuple(rows), self.app.size)
        below.name_rule(title, "", self.app.size.width)
        if content != self._made:
            self._made = content
            below.put([item(None, row).left for row in rows])

    def _show_facts(self, facts: Sequence[Item]) -> None:
        for pane in self.query(Facts):
            pane.show(sequence(wrap_facts(facts, FACTS_WIDTH - FRAME) if self.facts_shown else ()))
            lacks = not facts
            if lacks is not self._lacks_facts:
                self._lacks_facts = lacks
                pane.display = self.facts_shown and not lacks
                if self.facts_shown:
                    self.call_after_refresh(self._again)  # the preview has another width

    def text_rows(self, text: str, lines: int = LINES, size: int = SIZE) -> Sequence[Row]:
        """Returns the rows of the beginning of a Markdown text, for the preview. `lines`, `size`: the most
        lines and characters of the text. They are so few that the rows can be made between two keys."""
        if self.texts is None:
            return ()
        begun = beginning(text, lines, size)
        rows = self.texts.rows(begun, self.preview_width)
        if len(begun) == len(text):
            return rows
        from tui.markdown.words import Row

        return [*rows, Row(CUT)]

    def fills(self, rows: Sequence[object]) -> bool:
        """Returns whether these rows fill the preview. If they do, rows below them need not be made yet."""
        return not self._walked and 0 < self.preview.fits < len(rows)

    @property
    def preview_width(self) -> int:
        width = self.app.size.width - 2 if self.explains_below else self.preview.size.width
        return max(20, width)

    # --- keys

    def do_preview(self) -> None:
        if self.app.size.width < TWO_PANES:
            self.front.say(f"there is room for a preview from {TWO_PANES} columns", "warn")
            return
        self._hides, self._zooms = not self._hides, False
        self.front.set_focus(self.listed)
        self._previewed = None
        self.place_panes()
        self._paint_rows()
        self.rest()

    def do_narrower(self) -> None:
        self._resize(-STEP)

    def do_wider(self) -> None:
        self._resize(STEP)

    def _resize(self, by: int) -> None:
        self._svc.shares[self.LIST] = max(LEAST, min(MOST, self._share + by))
        self.place_panes()
        self._paint_rows()
        self.call_after_refresh(self._again)

    def do_zoom(self) -> None:
        if self.previews:
            self._zooms = not self._zooms
            self.place_panes()
            self.front.set_focus(self.preview if self._zooms else self.listed)
            self.call_after_refresh(self._again)

    def leave_preview(self) -> bool:
        """Called at esc. If the preview is shown alone, show the list beside it again. Otherwise move the
        focus from the preview to the list. Returns False if neither was possible."""
        if self._zooms:
            self.do_zoom()
            return True
        if self.previews and self.preview.has_focus:
            self.front.set_focus(self.listed)
            return True
        return False


class Split(Panes, View):
    """A tab of a repository with a list and a preview."""

    @property
    def front(self) -> Base:
        return self.of

    def compose(self) -> ComposeResult:
        yield from self.two_panes()

    def back(self) -> bool:
        return self.leave_preview()


class SplitScreen(Panes, Base):
    """A screen with a list and a preview."""

    @property
    def front(self) -> Base:
        return self

    def content(self) -> ComposeResult:
        yield from self.two_panes()

    def on_screen_resume(self) -> None:
        """Called when the screen is in front again. Shows the preview again, because the cursor may have
        moved just before another screen opened, which cancelled its preview."""
        super().on_screen_resume()
        if self.has_widgets:
            self.rest()

    def do_back(self) -> None:
        if not self.leave_preview():
            super().do_back()
