"""A card to choose a branch or tag. If there is room, the newest seals of the one under the cursor are shown
beside the list."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import cast

from textual.app import ComposeResult

from localstore.core.model.history import SealSummary
from localstore.core.model.ref import Ref
from tui import contents
from tui.screens.base import Base
from tui.screens.choose import Choose
from tui.screens.lists.glance import seal_line
from tui.screens.split import Panes
from tui.text import Part, safe
from tui.widgets.lines import Item


class ChooseRef(Panes, Choose):
    WIDTH, LEAST = 140, 14
    LIST = "choices"
    EMPTY = "nothing to choose"

    def __init__(self, repo_id: str, items: Sequence[Item], chosen: Callable[[Ref], None]) -> None:
        super().__init__("branch or tag", items, chosen)
        self._repo_id = repo_id

    @property
    def front(self) -> Base:
        return self

    @property
    def framed(self) -> bool:  # type: ignore[override]  # a property of what others have as a value
        return not self.previews

    def content(self) -> ComposeResult:
        yield from self.two_panes()

    def titled(self) -> tuple[Part, ...]:
        return (("Branches and tags", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.rest()

    def preview_of(self, key: Hashable) -> None:
        ref = cast("Ref", key)
        if ref.head is None:
            self.show_preview(key, safe(ref.name), [(("nothing is sealed here yet", "dim"),)])
            return

        def paint(seals: list[SealSummary], at: float) -> None:
            now = self.svc.clock()
            self.show_preview(key, safe(ref.name), [seal_line(seal, now) for seal in seals])

        self.svc.load(contents.recent(self._repo_id, ref.name), paint)
