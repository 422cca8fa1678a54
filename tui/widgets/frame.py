"""The lines around a screen's content: title above, keys and messages below, and the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from rich.cells import cell_len
from textual.events import Key
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from tui.text import Part, columns, safe
from tui.theme import BACKGROUNDS, THEMES
from tui.widgets.strips import strip

LIGHTS: dict[str, tuple[Part, Part]] = {
    "live": (("●", "good"), (" live", "good")),
    "online": (("●", "good"), (" online", "good")),
    "polling": (("◐", "polling_pulse"), (" polling", "polling")),
    "slow": (("◐", "warn"), (" slow", "warn")),
    "offline": (("○", "offline_pulse"), (" offline", "warn")),
    "sign_in": (("○", "offline_pulse"), (" sign in", "warn")),
    "unknown": (("·", "dim"), (" connecting", "dim")),
}
"""State of a connection → its sign, which the terminal itself lets pulse, and its word."""


def _text_colour(colours: str) -> str:
    colour = THEMES[colours]["text"].color
    return colour.name if colour is not None else "ansi_default"


class Line(Widget):
    """One line of parts, with `right` at the right edge. It repaints only if it has changed."""

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


class Hints(Line):
    """The keys of a screen: as many as fit, and always the last, which lists all."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[tuple[str, str], ...] = ()

    def offer(self, hints: Sequence[tuple[str, str]]) -> None:
        """Show keys, each with its label."""
        self._hints = tuple(hints)
        self.put(self._fitting())

    def on_resize(self) -> None:
        if self._hints:
            self.put(self._fitting())

    def say(self, words: Part) -> None:
        """Show a message instead of the keys."""
        self._hints = ()
        self.put(((" ", "text"), words))

    def _fitting(self) -> list[Part]:
        hints = list(self._hints)
        width = sum(cell_len(f"{key} {label}  ") for key, label in hints) - 1  # one blank before, two behind
        while len(hints) > 1 and width > self.size.width > 0:
            width -= cell_len("{} {}  ".format(*hints.pop(-2)))
        parts: list[Part] = [(" ", "text")]
        for key, label in hints:
            parts += [(key, "accent"), (f" {label}  ", "dim")]
        return [*parts[:-1], (parts[-1][0].rstrip(), parts[-1][1])]


OPENING_SECONDS = 2.0  # that keys wait for a prompt that opens, at most


class Prompt(Input):
    """One line of typing at the bottom. Calls `done(text)` at enter, `left()` at esc, `changed(text)` at each
    key; at tab the text becomes `complete(text)`; at up and down `move` is called with -1 and 1. `one_key`:
    the first letter is the answer."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0; background: ansi_default; color: ansi_default; }
    Prompt:focus { border: none; background: ansi_default; }
    """

    def __init__(
        self,
        sign: str,
        done: Callable[[str], None],
        cancelled: Callable[[], None],
        changed: Callable[[str], None] | None = None,
        value: str = "",
        complete: Callable[[str], str] | None = None,
        move: Callable[[int], None] | None = None,
        one_key: bool = False,
    ) -> None:
        super().__init__(value=value, placeholder=safe(sign), select_on_focus=False)
        self.cursor_blink = False
        self._ready = asyncio.Event()
        self._done, self._left, self._changed, self._complete = done, cancelled, changed, complete
        self._move, self._one_key = move, one_key

    @property
    def hints(self) -> list[tuple[str, str]]:
        """The keys that do not type a character here, each with its label."""
        if self._one_key:
            return [("y", "yes"), ("n", "no"), ("esc", "leave")]
        keys = [("enter", "done"), ("↑↓", "move"), ("tab", "complete"), ("esc", "leave")]
        lacks = {"↑↓": self._move, "tab": self._complete}
        return [(key, words) for key, words in keys if lacks.get(key, self) is not None]

    def on_mount(self) -> None:
        colours = getattr(self.app, "colours", "terminal")
        self.styles.background = BACKGROUNDS[colours]
        if colours != "terminal":
            self.styles.color = _text_colour(colours)

    def begin(self) -> None:
        """Start taking keys. Those that were typed before the prompt had the focus are in its text
        already."""
        self._ready.set()

    async def on_key(self) -> None:
        if not self._ready.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ready.wait(), OPENING_SECONDS)
            self.begin()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self._done(event.value)

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self._one_key and event.value:
            self._done(event.value)
        elif self._changed is not None:
            self._changed(event.value)

    def key_tab(self, event: Key) -> None:
        if self._complete is not None:
            event.stop()
            event.prevent_default()
            self.value = self._complete(self.value)
            self.cursor_position = len(self.value)

    def key_up(self, event: Key) -> None:
        self._step(event, -1)

    def key_down(self, event: Key) -> None:
        self._step(event, 1)

    def _step(self, event: Key, by: int) -> None:
        if self._move is not None:
            event.stop()
            event.prevent_default()
            self._move(by)

    def key_escape(self, event: Key) -> None:
        event.stop()  # the screen below takes it as back
        self._left()
