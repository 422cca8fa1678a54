"""A card for a text of several lines, over what it is about. Each change is stored as a draft at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import TextArea

from tui.screens.card import Card
from tui.text import Part, safe
from tui.theme import css_colour
from tui.widgets.frame import Hints, Prompt
from tui.widgets.lines import Lines
from tui.widgets.typed import dress


class _Text(TextArea):
    """The text. `ahead`: returns whether a key was typed for a screen that opens next."""

    def __init__(self, text: str, leave: Callable[[], None], ahead: Callable[[Key], bool]) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="indent", highlight_cursor_line=False, id="text")
        self.cursor_blink = False
        self._leave, self._ahead = leave, ahead

    def on_mount(self) -> None:
        dress(self, getattr(self.app, "colours", "terminal"))

    async def _on_key(self, event: Key) -> None:
        """Carry out the key before the next one: Textual looks up the binding of a key only when it has
        reached the app, and by then the next letter would be in the text."""
        if self._ahead(event):
            pass
        elif event.key == "escape":
            self._leave()
        elif event.key in self._bindings.key_to_bindings:
            for binding in self._bindings.key_to_bindings[event.key]:
                await self.run_action(binding.action)
        else:
            return
        event.stop()
        event.prevent_default()


class Write(Card):
    """Stands below the row that the text is about, or above it; `whole`: over all of the screen. Calls
    `done(text)` when the user sends the text, after the card has closed; `changed(text)` at each key. Esc
    stops typing: then enter sends, e edits again, d discards, and esc again keeps the draft."""

    AUTO_FOCUS = "_Text"
    LEAST = 8

    DEFAULT_CSS = """
    Write _Text { border: none; padding: 0; height: 1fr; background: ansi_default; color: ansi_default; }
    Write _Text:focus { border: none; }
    """

    def __init__(
        self,
        what: str,
        text: str,
        done: Callable[[str], None],
        changed: Callable[[str], None],
        *,
        whole: bool = False,
    ) -> None:
        super().__init__()
        self._what, self._text, self._done, self._changed = what, text, done, changed
        self._whole = whole

    def content(self) -> ComposeResult:
        yield _Text(self._text, self.leave, self._typed_ahead)

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self._what)}", "title"), ("  esc when it is written", "dim"))

    def show_frame(self) -> None:
        super().show_frame()
        if self.has_widgets and self._said is None and self._prompt is None:
            self.query_one("#keys", Hints).offer([("esc", "when it is written")])

    def place(self) -> None:
        """Leave the row that the text is about visible."""
        if not self.has_widgets:
            return
        card, size = self.query_one("#card"), self.app.size
        card.styles.width = size.width
        card.styles.height = size.height - 3 if self._whole else max(self.LEAST, size.height // 2 - 2)
        card.styles.border = ("round", css_colour(self.svc.colours, "accent"))
        card.styles.padding = (0, 1)
        self.styles.align_vertical = "bottom" if self._row_above else "top"

    @property
    def _row_above(self) -> bool:
        """Whether the row under the cursor of the screen below is in its upper half."""
        lines = self.below.lines
        if not isinstance(lines, Lines) or self._whole:
            return True
        row = lines.region.y + (lines.cursor - lines.top) * lines.tall
        return row < self.app.size.height // 2

    def on_mount(self) -> None:
        super().on_mount()
        area = self.query_one(TextArea)
        area.move_cursor(area.document.end)

    def news(self) -> None:
        """Does nothing: nobody else edits this text."""

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._changed(event.text_area.text)

    def on_key(self, event: Key) -> None:
        if not isinstance(self.focused, Prompt):
            event.prevent_default()  # letters are text here

    def leave(self) -> None:
        """Ask whether to send, edit, discard or keep the text."""
        self.ask("enter sends it · e goes on · d discards it · esc keeps it for later", self._decided)

    def _decided(self, typed: str) -> None:
        word, text = typed.strip().lower(), self.query_one(TextArea).text
        if word == "e":
            return
        self.app.pop_screen()
        if word == "d":
            self._changed("")
        elif not word and text.strip():
            self._done(text)

    def prompt_left(self) -> None:
        self.app.pop_screen()
