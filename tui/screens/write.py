"""A card (a frame over the screen) in which the user writes a text of several lines. The row that the text is
about stays visible beside it. Each change is stored as a draft at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual.app import ComposeResult
from textual.events import Key
from textual.widgets import TextArea

from localstore.core.words import count
from tui.screens.card import Card
from tui.screens.talk.mentions import Name, complete_word, offer_names, word_before
from tui.text import Part, safe
from tui.widgets.frame import SEND, Line, Passed, Prompt
from tui.widgets.framed import draw_frame
from tui.widgets.lines import Lines
from tui.widgets.typed import dress

CARD_LINES = 3  # lines of a card beside its text: the frame, and an empty one for the next words
REPLACED = 6  # lines that a suggestion replaces of which the card shows all
DECISIONS = ((f"enter {SEND}", "send"), ("e", "go on"), ("D", "discard"), ("esc", "keep for later"))


class _Text(TextArea):
    """The widget in which the text is written. `act`: called with each key. If the key is a command of the
    card, it carries the command out and returns True. `ahead`: returns whether a key was typed for a screen
    that is about to open. `passed`: called once no more keys come to a text that the user has left."""

    def __init__(
        self,
        text: str,
        act: Callable[[str], bool],
        ahead: Callable[[Key], bool],
        passed: Callable[[], None],
    ) -> None:
        super().__init__(text, soft_wrap=True, tab_behavior="indent", highlight_cursor_line=False, id="text")
        self.cursor_blink = False
        self._act, self._ahead, self._passed = act, ahead, passed

    def on_mount(self) -> None:
        dress(self, getattr(self.app, "colours", "terminal"))

    def on_passed(self, event: Passed) -> None:
        event.stop()
        self._passed()

    async def _on_key(self, event: Key) -> None:
        """Handle a key completely before the next one. Textual would look up the binding of a key only after
        the key has reached the app. By then the next letter would be in the text."""
        if self._ahead(event) or self._act(event.key):
            pass
        elif event.key in self._bindings.key_to_bindings:
            for binding in self._bindings.key_to_bindings[event.key]:
                await self.run_action(binding.action)
        else:
            return
        event.stop()
        event.prevent_default()


class _Replaced(Line):
    """A line that the text replaces, above the text."""


class Write(Card):
    """A card to write a text. It is placed so that the row that the text is about stays visible, and over the
    pane with that row alone, if the screen below names one.
    `changed(text)` is called at each change. Ctrl+s sends the text: the card closes, and `done(text)` is
    called. Esc asks what to do with the text, and the user answers with one key. `blank`: an empty text can
    be sent too.

    `before`: the text without any draft, if `text` is a draft. An unchanged text is left without a question.

    `sends`: what ctrl+s does, if a form has opened the card. The card then covers the whole screen. Esc goes
    back to the form, which knows the text already.

    `replaced`: the lines that the text is to replace. They are shown above it."""

    AUTO_FOCUS = "_Text"
    LEAST = 6
    FIRST = 4  # the card begins with this part of the screen's height, and grows with the text to half of it

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
        blank: bool = False,
        sends: str = "",
        replaced: Sequence[str] = (),
        before: str | None = None,
    ) -> None:
        super().__init__()
        self._replaced = tuple(replaced)
        self._what, self._text, self._done, self._changed = what, text, done, changed
        self._blank, self._sends = blank, sends
        self._before = text if before is None else before
        self._word = ""  # before the cursor, if it is about a person or a number
        self._names: Sequence[Name] | None = None  # to which such words can be completed
        self._placed_for = 0  # lines of the text
        self._reported, self._is_left = text, False  # the text that `changed` was called with last

    def content(self) -> ComposeResult:
        for _ in self._list_replaced():
            yield _Replaced()
        yield _Text(self._text, self._act, self._typed_ahead, self.svc.end_passing)

    def title_parts(self) -> Sequence[Part]:
        return ((f" {safe(self._what)}", "title"),)

    def footer(self) -> list[tuple[str, str]]:
        leaves = "back to the form" if self._sends else "leave: send, go on, discard or keep"
        completes = [("tab", "complete")] if self._word else []
        return [*completes, (SEND, self._sends or "send"), ("esc", leaves)]

    def place(self) -> None:
        """Set the size of the card, and place it so that the row that the text is about stays visible."""
        if not self.has_widgets:
            return
        card, size = self.query_one("#card"), self.app.size
        pane = self.below.pane_to_write_over()
        card.styles.width = size.width if pane is None or self._sends else size.width - pane.x
        self.styles.align_horizontal = "center" if pane is None else "right"
        half = max(self.LEAST, size.height // 2 - 2)
        first = max(self.LEAST, size.height // self.FIRST)
        half = max(first, min(half, self._text_height + CARD_LINES))
        more = min(len(self._list_replaced()), max(0, size.height - half - 4))
        height = size.height - 3 if self._sends else half + more
        card.styles.height = height
        draw_frame(card)
        card.styles.padding = (0, 1)
        self.styles.align_vertical = "bottom"
        self._cover_rows(height)

    @property
    def _text_height(self) -> int:
        """The lines that the text takes, wrapped to the width of the card."""
        text = self.query_one(TextArea)
        return text.wrapped_document.height if text.size.width else text.document.line_count

    def _list_replaced(self) -> list[str]:
        """Returns the rows above the text: the lines that it replaces, of which only the first are shown if
        there are many."""
        rows, rest = list(self._replaced[:REPLACED]), len(self._replaced) - REPLACED
        return [*rows, f"… {count(rest, 'more line')}"] if rest > 0 else rows

    def _show_replaced(self) -> None:
        """Paint the lines that the text replaces, as a comparison paints deleted lines."""
        tints = self.svc.tints
        marked = "delete" if tints is None else tints.line("delete", "delete")
        plain = "delete" if tints is None else tints.line("delete", "text")
        rows = self._list_replaced()
        for number, (line, row) in enumerate(zip(self.query(_Replaced), rows, strict=True)):
            sign = " " if number == REPLACED else "−"
            line.put(((f"{sign} ", marked), (safe(row), plain), (" " * self.app.size.width, plain)))

    def _cover_rows(self, height: int) -> None:
        """Scroll the list below so that the row that the text is about is above the card. `height`: the lines
        of the card."""
        lines = self.below.lines
        if isinstance(lines, Lines) and not self._sends:
            end = self.app.size.height - 1 - height  # the first line of the card
            lines.cover(max(0, min(lines.region.bottom - end, lines.size.height - 1)))

    def on_mount(self) -> None:
        super().on_mount()
        self._show_replaced()
        area = self.query_one(TextArea)
        area.styles.padding = (0, 0, 0, 2) if self._replaced else 0  # it stands below the replaced lines
        area.move_cursor(area.document.end)

    def news(self) -> None:
        """Does nothing, because nobody else edits this text."""

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self._report()
        area = self.query_one(TextArea)
        if not self._is_left and self._text_height != self._placed_for:
            self._placed_for = self._text_height
            self.place()
        row, column = area.cursor_location
        word = word_before(area.document.get_line(row)[:column])
        offered = offer_names(word, self.names) if word else ""
        message = (offered, "dim") if offered else None
        if message != self._said or word != self._word:
            self._said, self._word = message, word if offered else ""
            self.show_frame()

    @property
    def names(self) -> Sequence[Name]:
        """The people, issues and proposals to which a word can be completed."""
        if self._names is None:
            self._names = self.below.known_names()
        return self._names

    def _complete(self) -> bool:
        """Complete the word before the cursor. Returns False if there is none to complete."""
        if not self._word:
            return False
        area = self.query_one(TextArea)
        row, column = area.cursor_location
        area.replace(complete_word(self._word, self.names), (row, column - len(self._word)), (row, column))
        return True

    def on_key(self, event: Key) -> None:
        if not isinstance(self.focused, Prompt):
            event.prevent_default()  # letters are text here

    def _report(self) -> None:
        """Call `changed` with the typed text, if it differs from the text of the last call. Does nothing once
        the user has left the card, because the draft of the text may be deleted by then."""
        if self._typed != self._reported and not self._is_left:
            self._reported = self._typed
            self._changed(self._typed)

    # --- what becomes of it

    @property
    def _typed(self) -> str:
        return self.query_one(TextArea).text

    def _act(self, key: str) -> bool:
        """Carry out a key that belongs to the card. Returns False for any other key."""
        if key == SEND:
            self._send()
        elif key == "escape":
            self.leave()
        elif key == "tab":
            return self._complete()
        return key in (SEND, "escape")

    def leave(self) -> None:
        """Called at esc. Goes back to the form that has opened the card. Without a form, asks what to do with
        the text, if it is not empty."""
        if self._sends or not self._typed.strip() or self._typed == self._before:
            self._close()
        else:
            self.ask("send it?", self._decide, on_leave=self._keep, answers=DECISIONS)

    def _decide(self, key: str) -> None:
        if key in ("", SEND):
            self._send()
        elif key == "D":
            self._report()
            self._is_left = True
            self._changed("")
            self._close("discarded")
        elif key != "e":
            self.leave()

    def _send(self) -> None:
        text = self._typed
        if not (text.strip() or self._blank or self._sends):
            self.say("nothing is written yet", "warn")
            return
        if self._replaced and text == "\n".join(self._replaced):
            self.say("these are the lines as they are; nothing is suggested yet", "warn")
            return
        self._close()
        self._done(text)

    def _keep(self) -> None:
        self._close("kept as a draft for later")

    def _close(self, words: str = "") -> None:
        """Close the card, and show `words` on the screen below."""
        below = self.below
        if isinstance(below.lines, Lines):
            below.lines.cover(0)
        self._report()
        self._is_left = True
        self.svc.keep_order(self.query_one(TextArea))
        self.app.pop_screen()
        if words:
            below.say(words, "dim")
