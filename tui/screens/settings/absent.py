"""Panels for settings that no server offers yet."""

from __future__ import annotations

from tui.screens.settings.panel import Panel
from tui.widgets.lines import Item


class Absent(Panel):
    WHAT = ""

    def rows(self) -> list[Item]:
        return [self.note(f"{self.WHAT}: not in this version of svc; servers have no route for it yet")]

    def chosen(self, kind: str, name: str) -> None:
        """Does nothing: no row can be chosen."""


class Upstream(Absent):
    NAME = "Upstream source"
    WHAT = "a git host or a model hub"


class Marketplace(Absent):
    NAME = "Marketplace"
    WHAT = "a sale"
