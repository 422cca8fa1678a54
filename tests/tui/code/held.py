"""Holds back answers of the server, so that they come after the user has gone on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot

from tests.tui.test_app import settle, soon
from tui.app import SvcApp
from tui.reads import Read


class Held:
    """Holds back the answers of requests whose keys contain a word, until `let_go` is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.word, self.answers = "", list[tuple[str, Callable[[], None]]]()
        load = SvcApp.load

        def hold(app: SvcApp, read: Read[Any], paint: Callable[[Any, float], None], *rest: Any) -> None:
            if not self.word or self.word not in read.key:
                load(app, read, paint, *rest)
                return

            def keep(value: Any, at: float) -> None:
                self.answers.append((read.key, lambda: paint(value, at)))

            load(app, read, keep, *rest)

        monkeypatch.setattr(SvcApp, "load", hold)

    async def let_go(self, pilot: Pilot[None], count: int = 1, *, last_first: bool = False) -> str:
        """Deliver the answers once `count` of them are there."""
        await soon(pilot, lambda: len(self.answers) >= count)
        self.word = ""
        for _, paint in reversed(self.answers) if last_first else self.answers:
            paint()
        self.answers.clear()
        return await settle(pilot)
