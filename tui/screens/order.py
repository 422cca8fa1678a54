"""Delivers keys that are typed while another screen opens, in the order in which they were typed.

The app gives a key to the screen in front. When a screen opens, some keys may still be on their way to the
screen below, and later ones would overtake them."""

from __future__ import annotations

import time
from typing import Any

from textual.events import Event, Key
from textual.message import Message
from textual.timer import Timer

from tui.display.lean import LeanApp
from tui.widgets.frame import OPENING_SECONDS


class Passed(Message):
    """Sent after the keys on their way to a screen; bubbles up to it."""


class Arrived(Message, bubble=False):
    """Tells the app that no key is on its way to a covered screen any more."""


class KeysInOrder(LeanApp, inherit_bindings=False):
    """Holds keys from the opening of a screen until all keys typed before have arrived."""

    _passing = 0  # screens that keys may be on their way to
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
            self._passing += 1
            follower = Passed()
            follower.set_sender(self)  # what a screen sends does not bubble up to it
            (below.focused or below).post_message(follower)
            if self._patience is None:
                self._patience = self.set_timer(OPENING_SECONDS, self._hand_on)
        return done

    def came_below(self, key: Key) -> bool:
        """Hold a key that arrived at a screen below. Returns whether it will be delivered in order."""
        if self._passing:
            self._early.append(key)
        return bool(self._passing)

    def passed(self) -> None:
        """Called when a screen below has received all keys on their way to it."""
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
