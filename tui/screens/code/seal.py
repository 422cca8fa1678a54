"""The screen of one seal. Above are its message, author and signature. Below are its files and their
changes."""

from __future__ import annotations

from collections.abc import Sequence

from localstore.core.model.history import Compare
from localstore.core.model.repo import Repo
from tui import contents
from tui.actions import Action
from tui.screens.code.about_changes import AboutChanges
from tui.screens.code.changed_files import CHANGES
from tui.screens.code.clipboard import copy
from tui.screens.code.seal_rows import Names, Row, counts, seal_rows, subject_of
from tui.text import Part, safe

MESSAGE, SHORT = 8, 2  # rows of a message below its first line: on a high screen, on a low one
HIGH = 30  # rows of a high screen


class SealScreen(AboutChanges):
    """The screen of one seal with the files that it changed."""

    ACTIONS: tuple[Action, ...] = (*CHANGES, Action("copy", ("y",), "copy the seal's id", footer=True))

    def __init__(self, repo: Repo, seal: str, path: str = "", names: Names | None = None) -> None:
        """Makes the screen. `path`: the file whose changes are shown first. `names`: the names of branches
        and tags, by the id of the seal at their head."""
        super().__init__(repo, path)
        self._seal, self._names = seal, names or {}
        self._checked: contents.CheckedSeal | None = None
        self._changed: Row = ()  # how many files and lines it changed

    @property
    def new_seal(self) -> str:
        return self._seal

    @property
    def old_seal(self) -> str:
        parents = self._checked.seal.parents if self._checked is not None else []
        return parents[0] if parents else ""

    def whole_diff(self) -> str:
        return f"svc show {self._seal[:8]}"

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {"seal": self._seal}

    def title_parts(self) -> Sequence[Part]:
        parts: list[Part] = [
            (f" {safe(self.repo.full_name)}", "title"),
            (f"  seal {self._seal[:8]}  ", "accent"),
        ]
        if self._checked is not None:
            parts.append(subject_of(self._checked.seal))
        return parts

    def on_mount(self) -> None:
        # Textual calls that of the base classes by itself.
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(contents.checked_seal(self.repo, self._seal), self._paint_seal)
        self.svc.load(contents.changes_made(self.repo.id, self._seal), self._paint_changes)

    def _paint_seal(self, checked: contents.CheckedSeal, at: float) -> None:
        self._checked = checked
        self.paint()
        self.show_frame()
        self.show_bytes_again()

    def _paint_changes(self, compare: Compare, at: float) -> None:
        self._changed = counts(compare)
        self.paint()
        self.show_changes(compare)

    @property
    def about_title(self) -> str:
        return f"seal {self._seal[:8]}"

    def about_rows(self, *, wide: bool) -> list[Row]:
        """Returns the rows about the seal: message, author and signature."""
        checked, size = self._checked, self.app.size
        if checked is None:
            return [(("asking the server", "dim"),)]
        most, width = MESSAGE if size.height >= HIGH else SHORT, size.width - (4 if wide else 2)
        return seal_rows(
            checked.seal, self.svc.clock(), self._names, width, most, checked.fault, self._changed
        )

    def do_copy(self) -> None:
        """Put the id of the seal on the terminal's clipboard."""
        copy(self, self._seal)
