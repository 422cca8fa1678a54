"""The base of screens that show changed files and, above them, a few rows about what has changed them."""

from __future__ import annotations

from textual.app import ComposeResult

from tui.screens.base import TWO_PANES
from tui.screens.code.changed_files import ChangedFiles
from tui.screens.code.seal_rows import Row
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Item, Lines, sequence


class AboutChanges(ChangedFiles):
    """The base of these screens. The rows have a frame where the screen is wide."""

    DEFAULT_CSS = "AboutChanges #about { height: 1; padding: 0 1; }"

    # --- what a subclass gives

    @property
    def about_title(self) -> str:
        """The title of the frame."""
        raise NotImplementedError

    def about_rows(self, *, wide: bool) -> list[Row]:
        """Returns the rows. `wide`: whether they have a frame, and room for more words."""
        raise NotImplementedError

    # --- the screen

    def content(self) -> ComposeResult:
        about = Lines(marked=False, id="about")
        about.can_focus = False
        yield about
        yield from self.files_and_changes()

    def place(self) -> None:
        super().place()
        if self.query("#about"):
            self.paint()

    def paint(self) -> None:
        """Paint the rows again, because the ages in them have changed, and make their widget high enough for
        them."""
        about, wide = self.query_one("#about", Lines), self.app.size.width >= TWO_PANES
        if wide:
            draw_frame(about, "line")
        else:
            about.styles.border = None
        rows = self.about_rows(wide=wide)
        about.styles.height = len(rows) + (2 if wide else 0)
        about.show(sequence([Item(None, row) for row in rows]))
        if wide:
            about.name_frame(self.about_title, "")
