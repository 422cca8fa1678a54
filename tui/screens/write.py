"""A screen for writing several lines of text. Each change is stored as a draft at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import TextArea

from tui.screens.base import Over
from tui.text import Part, safe
from tui.widgets.frame import Prompt


class _Text(TextArea):
    """The text. `ahead`: returns whether a key was typed for a screen that opens next."""

    def __init__(self, text: str, leave: Callable[[], None], ahead: Callable[[Key], bool]) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="indent", highlight_cursor_line=False, id="text")
        self.cursor_blink = False
        self._leave, self._ahead = leave, ahead

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


class Write(Over):
    """A screen for writing a text. It closes when the user sends the text, then calls `done(text)`; it calls
    `changed(text)` at each key. Esc stops typing: then enter sends, e edits again, d discards, and a second
    esc keeps the draft."""

    AUTO_FOCUS = "_Text"

    DEFAULT_CSS = """
    Write _Text { border: none; padding: 0; height: 1fr; background: ansi_default; color: ansi_default; }
    Write _Text:focus { border: none; }
    """

    def __init__(
        self, what: str, text: str, done: Callable[[str], None], changed: Callable[[str], None]
    ) -> None:
        super().__init__()
        self._what, self._text, self._done, self._changed = what, text, done, changed

    def content(self) -> ComposeResult:
        yield _Text(self._text, self.leave, self._typed_ahead)

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self._what)}", "title"), ("  esc when it is written", "dim"))

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
