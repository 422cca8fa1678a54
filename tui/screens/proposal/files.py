"""The changes of a proposal: files and lines against its base."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult

from localstore.core.model.collaboration.proposal import Proposal
from localstore.core.model.history import Compare
from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.differing import DIFF_ACTIONS, Differing
from tui.text import Part, safe
from tui.widgets.diff import Diff, Key


class Files(Differing, Base):
    ACTIONS: tuple[Action, ...] = DIFF_ACTIONS

    def __init__(self, repo: Repo, one: Proposal, path: str = "") -> None:
        super().__init__()
        self.repo, self._one, self._path = repo, one, path
        self._count = 0

    def content(self) -> ComposeResult:
        yield Diff(id="diff")

    def title_parts(self) -> Sequence[Part]:
        files = f"{self._count} file{'' if self._count == 1 else 's'}  "
        named = f" {safe(self.repo.full_name)} #{self._one.number} files"
        return ((named, "title"), (f"  {files}", "dim"), (safe(self._one.title), "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        one = self._one
        self.svc.load(reads.changes(self.repo.id, one.base_seal, one.head_seal), self._paint)

    def _paint(self, found: Compare, at: float) -> None:
        self._count = len(found.files)
        self.diff.show_files(found.files)
        self.diff.find(lambda item: item.key == Key(self._path, "file", 0, 0), 1)
        self.show_frame()

    @property
    def diff(self) -> Diff:
        return self.query_one("#diff", Diff)

    def tell(self, text: str) -> None:
        self.say(text, "dim")
