"""The lines around the content of a screen: the title above, the line of keys below, and the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from rich.cells import cell_len
from rich.style import Style
from textual.events import Click, Key
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from tui.text import CUT, Part, columns, fit, fold, safe
from tui.theme import BACKGROUNDS, CURSOR, THEMES, css_colour
from tui.widgets.strips import strip

LIGHTS: dict[str, tuple[Part, Part]] = {
    "live": (("●", "good"), (" live", "good")),
    "online": (("●", "good"), (" online", "good")),
    "polling": (("◐", "polling_pulse"), (" polling", "polling")),
    "slow": (("◐", "warn"), (" slow", "warn")),
    "offline": (("○", "offline_pulse"), (" offline", "warn")),
    "sign_in": (("○", "offline_pulse"), (" sign in", "warn")),
    "none": (("·", "dim"), (" no server", "dim")),
    "unknown": (("·", "dim"), (" connecting", "dim")),
}
"""State of a connection → its sign, which the terminal itself lets pulse, and its word."""


class Line(Widget):
    """A widget with one line of parts. The parts `right` are aligned to the right edge. It is painted only
    when it changes."""

    DEFAULT_CSS = "Line { height: 1; width: 1fr; }"

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._left: tuple[Part, ...] = ()
        self._right: tuple[Part, ...] = ()

    @property
    def left(self) -> tuple[Part, ...]:
        """The parts at the left edge."""
        return self._left

    def put(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        content = (tuple(left), tuple(right))
        if content != (self._left, self._right):
            self._left, self._right = content
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        return strip(columns(self._left, self._right, width), width, styles)


class Folded(Line):
    """A line of parts that is wrapped to as many lines as it needs, at most SAID_ROWS. The parts `right` are
    aligned to the right edge of the last one, or of one more if they do not fit there."""

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._rows: list[tuple[Part, ...]] = [()]

    def put(self, left: Sequence[Part], right: Sequence[Part] = ()) -> None:
        super().put(left, right)
        self._place()

    def on_resize(self) -> None:
        self._place()

    def _place(self) -> None:
        """Wrap the parts, and set the height to the lines that they need."""
        width = self.size.width or self.app.size.width
        beside = sum(cell_len(text) for text, _ in self._right)
        rows = cut_rows(fold(self._left, width - 2), width - 2)
        if beside and sum(cell_len(text) for text, _ in rows[-1]) + beside > width - 2:
            rows.append(())
        if rows != self._rows:
            self._rows = rows
            self.refresh()
        if self.styles.height is None or self.styles.height.value != len(rows):
            self.styles.height = len(rows)

    def render_line(self, y: int) -> Strip:
        styles, width = THEMES[getattr(self.app, "colours", "terminal")], self.size.width
        if y >= len(self._rows):
            return strip((), width, styles)
        right = self._right if y == len(self._rows) - 1 else ()
        return strip(columns(((" ", "text"), *self._rows[y]), right, width), width, styles)


class Hints(Line):
    """The line of keys. It shows as many keys as fit, and always the last one, which opens the list of all
    keys. A message stands before the keys if some keys fit beside it. Otherwise it stands above them, in at
    most SAID_ROWS lines. A sign shows that the rest was cut off."""

    class Clicked(Message):
        """Posted when a hint in the line of keys is clicked. `key` and `label`: the key and the words of the
        hint."""

        def __init__(self, key: str, label: str) -> None:
            super().__init__()
            self.key, self.label = key, label

    def __init__(self, id: str | None = None) -> None:
        super().__init__(id=id)
        self._hints: tuple[tuple[str, str], ...] = ()
        self._said: Part | None = None
        self._keeps_esc = False
        self._above: list[tuple[Part, ...]] = []  # rows of the message, if it does not fit beside keys

    def on_click(self, event: Click) -> None:
        event.stop()
        hints, end = self._select_hints()
        for key, label in hints if event.y == len(self._above) else ():
            begin, end = end, end + cell_len(f"{key} {label}  ")
            if begin <= event.x < end - 2:
                self.post_message(self.Clicked(key, label))

    def offer(
        self, hints: Sequence[tuple[str, str]], message: Part | None = None, *, keeps_esc: bool = False
    ) -> None:
        """Show these keys, each with what it does (key, label), and a message. `keeps_esc`: show esc also
        where other keys have no room."""
        self._hints, self._said, self._keeps_esc = tuple(hints), message, keeps_esc
        self._place()

    def on_resize(self) -> None:
        self._place()

    @property
    def _width(self) -> int:
        return self.size.width or self.app.size.width

    def _place(self) -> None:
        """Place the message and the keys, and set the height to the lines that they need."""
        above = [] if self._said is None or self._fits_beside() else self._fold(self._said)
        if above != self._above:
            self._above = above
            self.refresh()
        if self.styles.height is None or self.styles.height.value != len(above) + 1:
            self.styles.height = len(above) + 1
        hints, _ = self._select_hints()
        parts: list[Part] = [(" ", "text")]
        if self._said is not None and not above:
            parts += [self._said, (" " * BESIDE if hints else "", "text")]
        for key, label in hints:
            parts += [(key, "accent"), (f" {label}  ", "dim")]
        self.put([*parts[:-1], (parts[-1][0].rstrip(), parts[-1][1])])

    def _fold(self, message: Part) -> list[tuple[Part, ...]]:
        """The rows of a message."""
        return cut_rows(fold([message], self._width - 2), self._width - 2)

    def _fits_beside(self) -> bool:
        """Whether the message leaves room for some keys in its line."""
        begin = self._begin(True)
        return len(self._fitting(begin)) >= min(KEYS_BESIDE, len(self._hints)) and begin < self._width

    def render_line(self, y: int) -> Strip:
        if y >= len(self._above):
            return super().render_line(y)
        styles = THEMES[getattr(self.app, "colours", "terminal")]
        return strip(columns(((" ", "text"), *self._above[y]), (), self.size.width), self.size.width, styles)

    def _begin(self, beside: bool) -> int:
        """Returns the column in which the first hint (a key and what it does) begins. `beside`: the message
        stands before the hints in the same line."""
        return 1 + (cell_len(self._said[0]) + BESIDE if beside and self._said is not None else 0)

    def _select_hints(self) -> tuple[list[tuple[str, str]], int]:
        """The hints (key, label) that are shown, and the column of the first one."""
        begin = self._begin(not self._above)
        return self._fitting(begin), begin

    def _fitting(self, begin: int) -> list[tuple[str, str]]:
        """Returns the hints that fit into a line that begins at the column `begin`. If a message stands
        before them and not even one fits, returns []. Without a message, the last hint is always returned."""
        hints = list(self._hints)
        width = begin + sum(cell_len(f"{key} {label}  ") for key, label in hints)  # two blanks behind
        while len(hints) > 1 and width > self._width:
            keeps = self._keeps_esc and len(hints) > 2 and hints[-2][0] == "esc"
            width -= cell_len("{} {}  ".format(*hints.pop(-3 if keeps else -2)))
        return hints if begin == 1 or width <= self._width else []


BESIDE = 3  # columns between a message and the keys beside it
KEYS_BESIDE = 3  # keys that have to fit beside a message
SAID_ROWS = 6  # lines of a message
SEND = "ctrl+s"  # the key that sends all of what is written
STEPS = {"up": -1, "down": 1}
YES_OR_NO = (("y", "yes"), ("n", "no"), ("esc", "leave"))
OPENING_SECONDS = 2.0  # that keys wait for a prompt that opens, at most


def cut_rows(rows: list[tuple[Part, ...]], width: int) -> list[tuple[Part, ...]]:
    """Returns at most SAID_ROWS of the rows of a message. If some are left out, a sign says so."""
    if len(rows) <= SAID_ROWS:
        return rows
    return [*rows[: SAID_ROWS - 1], (*fit(rows[SAID_ROWS - 1], width - 1), (CUT, "dim"))]


class Passed(Message):
    """Sent to a widget after the keys that are on their way to it. When this message arrives, all these keys
    have arrived too."""


class Prompt(Input):
    """An input line at the bottom of a screen. It calls `done(text)` at enter, `cancelled()` at esc, and
    `changed(text)` when the text has changed. At tab, `complete(text)` replaces the text. At up and down,
    `move` is called with -1 and 1.

    `answers`: for a prompt that one key answers, the keys and what they mean. An answer can have several
    keys, of which the first one is shown. Such a prompt shows `sign` and the keys in place of a typed text.
    `space`: called at the space key, which then types nothing. `send`: called with the text at ctrl+s.
    `enter`, `leave`, `space_label`: words for what enter, esc and space do. `label`: the words before the
    text. `further`: called with each key that arrives after enter or esc. `passed`: called after the last of
    these keys.

    Each key is handled completely before the next one. Textual would look up the binding of a key only after
    the key has reached the app. By then later keys would be in the text."""

    DEFAULT_CSS = """
    Prompt { height: 1; border: none; padding: 0; background: ansi_default; color: ansi_default; }
    Prompt:focus { border: none; background: ansi_default; background-tint: transparent; }
    """

    def __init__(
        self,
        sign: str,
        done: Callable[[str], None],
        cancelled: Callable[[], None],
        further: Callable[[Key], None],
        passed: Callable[[], None],
        changed: Callable[[str], None] | None = None,
        value: str = "",
        complete: Callable[[str], str] | None = None,
        move: Callable[[int], None] | None = None,
        answers: Sequence[tuple[str, str]] = (),
        space: Callable[[], None] | None = None,
        enter: str = "done",
        label: str = "",
        send: Callable[[str], None] | None = None,
        leave: str = "leave",
        space_label: str = "on or off",
    ) -> None:
        super().__init__(value=value, placeholder=safe(sign), select_on_focus=False)
        self._label = safe(label)
        self.cursor_blink = False
        self._ready = asyncio.Event()
        self._done, self._cancelled, self._changed, self._complete = done, cancelled, changed, complete
        self._move, self._answers, self._space, self._enter = move, answers, space, enter
        self._further, self._passed, self._send, self._leave = further, passed, send, leave
        self._space_label = space_label
        self._closed_by_key = False
        self._is_unanswered = False  # whether the last key was none of the answers
        self._reported = value  # the text that `changed` was called with last

    def get_component_rich_style(
        self, *names: str, partial: bool = False, default: Style | None = None
    ) -> Style:
        """Returns the style of a part of the input line. The cursor is reversed text, and the placeholder of
        an empty text is dim."""
        if "input--cursor" in names or "input--selection" in names:
            return CURSOR
        if "input--placeholder" in names:
            return THEMES[getattr(self.app, "colours", "terminal")]["dim"]
        return super().get_component_rich_style(*names, partial=partial, default=default)

    @property
    def hints(self) -> list[tuple[str, str]]:
        """Returns (key, what it does) of the keys that are commands in the prompt, and not text."""
        if self._answers:
            return [(keys.split()[0], words) for keys, words in self._answers]
        keys = [
            ("space", self._space_label),
            ("enter", self._enter),
            (SEND, "send all"),
            ("↑↓", "move"),
            ("tab", "complete"),
            ("esc", self._leave),
        ]
        lacks = {"space": self._space, SEND: self._send, "↑↓": self._move, "tab": self._complete}
        return [(key, words) for key, words in keys if lacks.get(key, self) is not None]

    def on_mount(self) -> None:
        colours = getattr(self.app, "colours", "terminal")
        self.styles.padding = (0, 0, 0, cell_len(self._label) + 2 if self._label else 0)
        self.styles.background = BACKGROUNDS[colours]
        self.styles.color = css_colour(colours, "text")

    def render_line(self, y: int) -> Strip:
        if not self._answers:
            return super().render_line(y)
        parts: list[Part] = [(f"{self.placeholder}   ", "text")] if self.placeholder else []
        if self._is_unanswered:
            parts.append(("these answer it:  ", "warn"))
        parts += [part for key, words in self.hints for part in ((key, "accent"), (f" {words}   ", "dim"))]
        return strip(fit(parts, self.size.width), self.size.width, self._styles_of_theme)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Returns the line to paint. The label is in its left padding."""
        lines = super().render_lines(crop)
        if not self._label or crop.x or not lines:
            return lines
        label = strip([(f" {self._label} ", "accent")], self.styles.padding.left, self._styles_of_theme)
        return [Strip.join([label, lines[0].crop(label.cell_length)]), *lines[1:]]

    @property
    def _styles_of_theme(self) -> dict[str, Style]:
        return THEMES[getattr(self.app, "colours", "terminal")]

    def begin(self, ahead: list[Key]) -> None:
        """Begin to accept keys. `ahead`: the keys that were typed before the prompt had the focus. The
        characters at the beginning of the list are typed into the prompt now, and removed from the list."""
        while ahead and ahead[0].is_printable and not self._closed_by_key:
            letter = ahead.pop(0).character or ""
            if self._answers:
                self._answer(letter, letter)
            elif letter == " " and self._space is not None:
                self._report()
                self._space()
            else:
                self.replace(letter, *sorted(self.selection))  # a selected text is typed over
        self._ready.set()

    def _is_answer(self, key: str) -> bool:
        return any({key, key.casefold()} & {*keys.split()} for keys, _ in self._answers)

    def _answer(self, key: str, letter: str | None) -> None:
        """Close the prompt with a key, if it is one of the answers. Otherwise show which keys are."""
        if self._is_answer(key) or self._is_answer(letter or ""):
            self._close(self._done, letter or "")
        else:
            self._is_unanswered = True
            self.refresh()

    async def on_key(self, event: Key) -> None:
        if not self._ready.is_set():
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._ready.wait(), OPENING_SECONDS)
            self._ready.set()
        if await self._carry_out(event):
            event.stop()  # the screen below takes esc as back
            event.prevent_default()

    async def _carry_out(self, event: Key) -> bool:
        """Handle a key. Returns False if the key is a letter to be typed, or if it has no meaning in the
        prompt."""
        if self._closed_by_key:
            self._further(event)
        elif event.key == "escape":
            self._report()
            self._close(lambda text: self._cancelled(), self.value)
        elif event.key == "enter":
            self._report()
            self._close(self._done, self.value)
        elif event.key == SEND and self._send is not None:
            self._report()
            self._close(self._send, self.value)
        elif self._answers and (event.is_printable or self._is_answer(event.key)):
            self._answer(event.key, event.character if event.is_printable else event.key)
        elif event.key == "space" and self._space is not None:
            self._report()
            self._space()
        elif event.key == "tab" and self._complete is not None:
            self._report()
            self.value = self._complete(self.value)
            self.cursor_position = len(self.value)
        elif event.key in STEPS and self._move is not None:
            self._report()
            self._move(STEPS[event.key])
        elif event.key in self._bindings.key_to_bindings:
            for binding in self._bindings.key_to_bindings[event.key]:
                await self.run_action(binding.action)
        else:
            return False
        return True

    def _close(self, answer: Callable[[str], None], text: str) -> None:
        self._closed_by_key = True
        answer(text)

    def on_passed(self, event: Passed) -> None:
        event.stop()
        self._passed()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._report()

    def _report(self) -> None:
        """Call `changed` with the typed text, if it differs from the text of the last call. Does nothing once
        the prompt is closed, because the draft of the text may be deleted by then."""
        if self._changed is not None and self.value != self._reported and not self._closed_by_key:
            self._reported = self.value
            self._changed(self.value)
