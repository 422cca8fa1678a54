"""Keeps keys in order. Keys that are typed while another screen opens reach that screen in the order in which
they were typed.

The app sends a key to the widget that has the focus when the key arrives. When a screen opens or a prompt
closes, some keys may still be on their way to the previous widget. Later keys would then overtake them."""

from __future__ import annotations

import time
from typing import Any

from textual.events import Event, Key
from textual.message import Message
from textual.timer import Timer
from textual.widget import Widget

from tui.display.lean import LeanApp
from tui.widgets.frame import OPENING_SECONDS, Passed


class Arrived(Message, bubble=False):
    """Posted to the app when no more keys are on their way to a covered screen."""


class KeysInOrder(LeanApp, inherit_bindings=False):
    """An app that keeps keys back while a screen opens, until the keys that were typed before have
    arrived."""

    _passing = 0  # widgets that keys may be on their way to, and that are no longer in front
    _patience: Timer | None = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._early: list[Key] = []  # came to the screen below
        self._late: list[Key] = []  # came after the opening
        self.key_at = 0.0  # when the last key came, by the monotonic clock

    def push_screen(self, *arguments: Any, **options: Any) -> Any:
        below = self.screen_stack[-1] if self.screen_stack else None
        done = super().push_screen(*arguments, **options)
        if below is not None and below.is_running and hasattr(below, "on_passed"):
            self.keep_order(below.focused or below)
        return done

    def keep_order(self, widget: Widget) -> None:
        """Keep new keys back until the keys that were already sent to `widget` have arrived. The message
        `Passed` is sent to the widget after them. The widget or its screen must call `end_passing` when it
        gets that message."""
        self._passing += 1
        follower = Passed()
        follower.set_sender(self)  # what a screen sends does not bubble up to it
        widget.post_message(follower)
        if self._patience is None:
            self._patience = self.set_timer(OPENING_SECONDS, self._hand_on)

    def came_below(self, key: Key) -> bool:
        """Called with a key that has arrived at a screen that another one covers. Returns whether the app
        keeps the key back. In that case the app delivers it later to the screen in front, in the order in
        which keys were typed."""
        if self._passing:
            self._early.append(key)
        return bool(self._passing)

    def end_passing(self) -> None:
        """Called once a covered screen has received every key that was sent to it."""
        self.post_message(Arrived())

    async def on_arrived(self) -> None:
        self._passing -= 1
        if self._passing <= 0:
            await self._hand_on()

    async def _hand_on(self) -> None:
        if self._patience is not None:
            self._patience.stop()
            self._patience = None
        self._passing = 0
        keys, self._early, self._late = [*self._early, *self._late], [], []
        for key in keys:
            await self.on_event(Key(key.key, key.character))

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key):
            self.key_at = time.monotonic()
        if self._passing and isinstance(event, Key) and not event.is_forwarded:
            self._late.append(event)
        else:
            await super().on_event(event)
