"""The lines around a screen's content: title above, keys and messages below, and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.events import Key
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from tui.text import Part, columns, safe, strip
from tui.theme import BACKGROUNDS, THEMES

LIGHTS: dict[str, tuple[Part, Part]] = {
    "live": (("●", "good"), (" live", "good")),
    "online": (("●", "good"), (" online", "good")),
    "polling": (("◐", "polling_pulse"), (" polling", "polling")),
    "offline": (("○", "offline_pulse"), (" offline", "warn")),
    "sign_in": (("○", "offline_pulse"), (" sign in", "warn")),
    "unknown": (("·", "dim"), (" connecting", "dim")),
}
"""State of a connection → its sign, which the terminal itself lets pulse, and its word."""


def _text_colour(colours: str) -> str:
    colour = THEMES[colours]["text"].color
    return colour.name if colour is not None else "ansi_default"


class Line(Widget):
    """One line of parts, the right ones at the right edge. It repaints only when it changes."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    def put(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        content = (tuple(left), tuple(right))
        if content != (self._left, self._right):
            self._left, self._right = content
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        return strip(columns(self._left, self._right, width), width, styles)


class Prompt(Input):
    """One line of typing at the bottom. Calls `done(text)` at enter, `left()` at esc, `changed(text)` at each
    key; at tab the text becomes `complete(text)`."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0; background: ansi_default; color: ansi_default; }
    Prompt:focus { border: none; background: ansi_default; }
    """

    def __init__(
        self,
        sign: str,
        done: Callable[[str], None],
        left: Callable[[], None],
        changed: Callable[[str], None] | None = None,
        value: str = "",
        complete: Callable[[str], str] | None = None,
    ) -> None:
        super().__init__(value=value, placeholder=safe(sign), select_on_focus=False)
        self.cursor_blink = False
        self.heard: Key | None = None  # the last key that came here
        self._late: list[Key] = []  # keys that were typed before it had the focus, on their way here
        self._done, self._left, self._changed, self._complete = done, left, changed, complete

    def take_late(self, event: Key) -> None:
        """Have a key that came to the screen come here."""
        event.stop()
        late = Key(event.key, event.character)
        late.set_sender(self.app)  # so that it bubbles up to there
        self._late.append(late)
        self.app.post_message(late)

    def on_key(self, event: Key) -> None:
        place = next((n for n, one in enumerate(self._late) if one is event), None)
        if place is not None:
            del self._late[: place + 1]
        elif self._late:  # it overtook them
            event.prevent_default()
            self.take_late(event)
        self.heard = event

    def on_mount(self) -> None:
        colours = getattr(self.app, "colours", "terminal")
        self.styles.background = BACKGROUNDS[colours]
        if colours != "terminal":
            self.styles.color = _text_colour(colours)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._done(event.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._changed is not None:
            self._changed(event.value)

    def key_tab(self, event: Key) -> None:
        if self._complete is not None:
            event.stop()
            event.prevent_default()
            self.value = self._complete(self.value)
            self.cursor_position = len(self.value)

    def key_escape(self, event: Key) -> None:
        event.stop()  # the screen below takes it as back
        self._left()
