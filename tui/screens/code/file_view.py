"""What the parts of the tab Code have in common: the open file, the mode (file, history, comparison), and the
panes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Literal, NamedTuple

from localstore.agent.talk import PersonOnBranch
from localstore.core.model.history import Blob
from tui.screens.view import View
from tui.widgets.lines import Lines


class TextPlace(NamedTuple):
    """A row in the text of a file. `key`: of the row under the cursor. `offset`: how many rows it is below
    the first visible one."""

    path: str
    key: Hashable
    offset: int


Mode = Literal["file", "history"]


class FileView(View):
    """A tab with the widgets `tree`, `file`, `diff`, `picture`, `people`, `file_title`, `about`, `seal_pane`
    and `bar`. `path`: the open file. `folder`: the folder that the tree shows."""

    path: str | None = None
    folder: str = ""
    _mode: Mode = "file"
    _return_to: TextPlace | None
    _people: list[PersonOnBranch]

    def place_in_file(self) -> TextPlace | None:
        """Returns the place of the cursor in the text of the open file. Returns None if none is open."""
        file = self.query_one("#file", Lines)
        if self.path is None or self._mode != "file" or file.key is None:
            return None
        return TextPlace(self.path, file.key, file.cursor - file.top)

    @property
    def replaying(self) -> bool:
        """Whether a replay of the open file's history is on the screen."""
        raise NotImplementedError

    @property
    def live(self) -> bool:
        """Whether the live state of the branch is on the screen, and not a seal."""
        raise NotImplementedError

    @property
    def wide(self) -> bool:
        """Whether there is room for two panes."""
        raise NotImplementedError

    def leave_replay(self) -> bool:
        """End the replay and show the file again. Returns False if there was no replay."""
        raise NotImplementedError

    def open_file(self, path: str, *, glimpsed: bool = False) -> None:
        raise NotImplementedError

    def take_row(self) -> None:
        """If the tree has the focus, make the file under its cursor the one that a key is about. For a folder
        there is none."""
        raise NotImplementedError

    def take_previewed(self) -> None:
        """Do the same, if there is room for a preview of the row."""
        raise NotImplementedError

    def _load_folder(self, folder: str, cursor: Hashable | None = None) -> None:
        """Show a folder in the tree."""
        raise NotImplementedError

    def reveal(self, path: str) -> None:
        """Move the cursor of the tree to a file."""
        raise NotImplementedError

    def _paint_tree(self, cursor: Hashable | None = None) -> None:
        raise NotImplementedError

    def _paint_file(self, blob: Blob, at: float, seal: str | None = None) -> None:
        raise NotImplementedError

    def _repaint(self) -> None:
        """Paint the text of the open file again, with the names of the people who are in it."""
        raise NotImplementedError

    def _arrange(self) -> None:
        """Show the panes that belong to what the tab shows (a file, a history or a comparison), as far as
        there is room."""
        raise NotImplementedError

    def _focus(self, name: str) -> None:
        raise NotImplementedError

    def _title(self, right: str) -> None:
        """Write the path of the open file above its text. `right`: words that follow the path."""
        raise NotImplementedError

    def _head(self, title: str, words: str) -> None:
        """Write a title above the pane of the file. `words`: words that follow the title."""
        raise NotImplementedError
