"""Panels for settings that no server offers yet. A single line names these settings."""

from __future__ import annotations

from tui.screens.settings.panel import Panel
from tui.widgets.lines import Item

NO_ROUTE = "not in this version of svc"


class Absent(Panel):
    def rows(self) -> list[Item]:
        return []

    def chosen(self, kind: str, name: str) -> None:
        """Does nothing, because no row can be chosen."""


class Upstream(Absent):
    NAME = "Upstream source"


class Marketplace(Absent):
    NAME = "Marketplace"
