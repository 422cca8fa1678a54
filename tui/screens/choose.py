"""Choose an item from a list; typing filters the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from textual.app import ComposeResult

from localstore.core.model.repo import Repo
from tui import reads
from tui.screens.card import Card
from tui.text import Part, safe
from tui.widgets.fuzzy import Fuzzy
from tui.widgets.lines import Item, Lines, sequence
from tui.widgets.made import Made


class Choose(Card):
    """A card that closes when an item is chosen, then calls `chosen` with the key of the item. `now`: the key
    on which the cursor begins."""

    LINES: type[Lines] = Lines

    def __init__(
        self,
        what: str,
        items: Sequence[Item] | Made[Any],
        chosen: Callable[[Any], None],
        now: Hashable | None = None,
    ) -> None:
        super().__init__()
        self._what, self._items, self._chosen, self._now = what, items, chosen, now

    def content(self) -> ComposeResult:
        yield self.LINES(empty="nothing to choose", unmatched="nothing here matches", id="choices")

    def title_parts(self) -> Sequence[Part]:
        return ((f" {self._what}", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        items = self._items
        rows = items if isinstance(items, Made) else sequence(items)
        self.query_one("#choices", Lines).show(rows, self._now)
        self.fit(len(items))
        self.open_prompt(self.do_filter)

    def do_filter(self, typed: str = "") -> None:
        lines = self.query_one("#choices", Lines)
        sign = "type to filter, up and down move, enter chooses"
        self.ask(sign, lambda text: self._choose(lines, text), lines.filter, typed, filtered=lines)

    def _choose(self, lines: Lines, typed: str) -> None:
        lines.ready()
        if lines.key is not None:
            self._take(lines.key)
            return
        self.do_filter(typed)  # to be corrected
        self.say(f"nothing here has {typed}" if typed else "nothing to choose", "warn")

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        self._take(event.key)

    def _take(self, key: Hashable) -> None:
        """Close, and pass on the chosen key, before the next key is handled."""
        self.app.pop_screen()
        self._chosen(key)

    def prompt_left(self) -> None:
        self.do_back()


class ChooseFile(Choose):
    """Choose a path by some of its letters."""

    LINES = Fuzzy


class ChooseRepo(Choose):
    """Choose a repository: first the user's repositories and the folder's, then others that the user may
    see."""

    def __init__(self, chosen: Callable[[Repo], None]) -> None:
        super().__init__("repositories", (), chosen)
        self._own: list[Repo] = []
        self._others: list[Repo] = []

    def on_mount(self) -> None:
        super().on_mount()
        self.svc.load(self.svc.repos, self._paint_own)
        self.svc.load(reads.visible_repos(), self._paint_others)

    def _paint_own(self, repos: list[Repo], at: float) -> None:
        self._own = repos
        self._paint()

    def _paint_others(self, repos: list[Repo], at: float) -> None:
        self._others = repos
        self._paint()

    def _paint(self) -> None:
        named = {repo.id: repo for repo in (*self._own, *self._others)}
        items = [Item(repo, ((safe(repo.full_name), "text"),)) for repo in named.values()]
        self.query_one("#choices", Lines).show(sequence(items))
        self.fit(len(items))
