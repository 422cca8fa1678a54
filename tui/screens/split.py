"""A tab with a list and, where there is room, a preview of the row under its cursor."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content
from textual.timer import Timer

from tui.actions import Action
from tui.screens.base import TWO_PANES
from tui.screens.view import View
from tui.text import Part
from tui.texts import Texts, item
from tui.theme import css_colour
from tui.widgets.lines import Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo import RepoScreen

REST = 0.12  # seconds that the cursor rests before a preview is asked for
SHARE, LEAST, MOST, STEP = 42, 25, 75, 8  # hundredths of the width that the list takes

SPLIT_ACTIONS = (
    Action("preview", ("P",), "hide or show the preview"),
    Action("narrower", ("less_than_sign",), "narrower list"),
    Action("wider", ("greater_than_sign",), "wider list"),
    Action("zoom", ("Z",), "the preview alone"),
)


class Preview(Lines):
    """What a row is about. It has a cursor while it has the focus."""

    DEFAULT_CSS = "Preview { padding: 0 1; }"

    def highlights(self, index: int) -> bool:
        return self.has_focus and super().highlights(index)


class Split(View):
    """Subclasses name their list and say what a row previews: `preview_of(key)` reads it and calls
    `show_preview`. Their `paint` calls `rest` at the end."""

    LIST = ""

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._share, self._hides, self._zooms = SHARE, False, False
        self._timer: Timer | None = None
        self._previewed: Hashable | None = None
        self.texts: Texts = Texts(self, self._again)

    def compose(self) -> ComposeResult:
        with Horizontal(classes="row"):
            yield Lines(id=self.LIST)
            yield Preview(marked=False, linked=True, id="preview")

    def on_mount(self) -> None:
        self.place_panes()

    def on_resize(self) -> None:
        self.place_panes()
        if self.previews:
            self.call_after_refresh(self._again)  # its width is that of the pane

    @property
    def listed(self) -> Lines:
        return self.query_one(f"#{self.LIST}", Lines)

    @property
    def preview(self) -> Lines:
        return self.query_one("#preview", Lines)

    @property
    def previews(self) -> bool:
        """Whether the preview is shown."""
        return self.app.size.width >= TWO_PANES and not self._hides

    # --- what a subclass gives

    def preview_of(self, key: Hashable) -> None:
        """Read what the row with this key is about, and show it with `show_preview`."""
        raise NotImplementedError

    def titled(self) -> tuple[Part, ...]:
        """The title of the list."""
        raise NotImplementedError

    def position(self) -> str:
        """Where the cursor is in the list."""
        raise NotImplementedError

    # --- panes

    def place_panes(self) -> None:
        """Show one pane, or two with frames."""
        rows, preview = self.listed, self.preview
        preview.display = self.previews
        rows.display = not (self.previews and self._zooms)
        for lines in (rows, preview):
            colour = css_colour(self.svc.colours, "accent" if lines.has_focus else "line")
            lines.styles.border = ("round", colour) if self.previews else None
        rows.styles.width = f"{self._share}%" if self.previews else "1fr"
        self._say_where()

    def on_descendant_focus(self) -> None:
        self.place_panes()

    def on_descendant_blur(self) -> None:
        self.place_panes()

    def _say_where(self) -> None:
        """Write title and position into the frame."""
        if self.previews:
            rows = self.listed
            rows.border_title = Content("".join(text for text, _ in self.titled()))
            rows.border_subtitle = Content(self.position())

    # --- the preview

    def on_lines_moved(self, event: Lines.Moved) -> None:
        if event.lines.id == self.LIST:
            self.rest()

    def rest(self) -> None:
        """The cursor is somewhere: once it rests there, show what the row is about."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._say_where()
        if self.previews and self.listed.key != self._previewed:
            self._timer = self.set_timer(REST, self._again)

    def _again(self) -> None:
        if not self.is_attached or not self.previews or not self.display or self.svc.screen is not self.of:
            return
        key = self.listed.key
        if key is None:
            self._previewed = None
            self.preview.border_title = None
            self.preview.show(())
        else:
            self.preview_of(key)

    def show_preview(self, key: Hashable, title: str, rows: Sequence[Row | tuple[Part, ...]]) -> None:
        """Show these rows, if the cursor is still on the row with this key."""
        if not self.is_attached or not self.previews or key != self.listed.key:
            return
        preview = self.preview
        fresh, self._previewed = key != self._previewed, key
        preview.border_title = Content(title)
        preview.show(sequence([item(place, row) for place, row in enumerate(rows)]))
        if fresh:
            preview.go(0, -1)

    def text_rows(self, text: str) -> Sequence[Row]:
        """The rows of a text in the preview."""
        return self.texts.rows(text, max(20, self.preview.size.width))

    # --- keys

    def do_preview(self) -> None:
        if self.app.size.width < TWO_PANES:
            self.of.say(f"there is room for a preview from {TWO_PANES} columns", "warn")
            return
        self._hides, self._zooms = not self._hides, False
        self.of.set_focus(self.listed)
        self._previewed = None
        self.place_panes()
        self.rest()

    def do_narrower(self) -> None:
        self._resize(-STEP)

    def do_wider(self) -> None:
        self._resize(STEP)

    def _resize(self, by: int) -> None:
        self._share = max(LEAST, min(MOST, self._share + by))
        self.place_panes()
        self.call_after_refresh(self._again)

    def do_zoom(self) -> None:
        if self.previews:
            self._zooms = not self._zooms
            self.place_panes()
            self.of.set_focus(self.preview if self._zooms else self.listed)
            self.call_after_refresh(self._again)

    def back(self) -> bool:
        if self._zooms:
            self.do_zoom()
            return True
        if self.previews and self.preview.has_focus:
            self.of.set_focus(self.listed)
            return True
        return False
