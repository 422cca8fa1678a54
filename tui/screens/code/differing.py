"""The actions that work in a comparison, for every screen that shows one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

from localstore.core.errors import SvcError
from localstore.core.model.history import ChangedFile
from tui import contents
from tui.actions import Action
from tui.widgets.coloured_file import TEXT_MAX, FileColours, colours_of
from tui.widgets.diff import BESIDE, Diff

if TYPE_CHECKING:
    from textual.widget import Widget

    from tui.asked import AskedApp

    Mixed = Widget
else:
    Mixed = object  # Textual takes the styles of the first base that is a widget

DIFF_ACTIONS = (
    Action("split", ("v",), "old and new side by side"),
    Action("blanks", ("W",), "white space"),
    Action("next_hunk", ("J",), "next hunk"),
    Action("previous_hunk", ("K",), "previous hunk"),
    Action("next_file", ("right_curly_bracket",), "next file"),
    Action("previous_file", ("left_curly_bracket",), "previous file"),
    Action("seen", ("m",), "seen: fold the file"),
)


class Differing(Mixed):
    """A screen or tab with the comparison `diff`. It runs the actions DIFF_ACTIONS on the comparison, and
    colours the words of the comparison by their roles."""

    _coloured = ("", "")  # path and seal of the file whose colours were asked for

    @property
    def diff(self) -> Diff:
        raise NotImplementedError

    def tell(self, text: str) -> None:
        """Show a message in the line of keys."""
        raise NotImplementedError

    def do_split(self) -> None:
        diff = self.diff
        if not diff.split and diff.room < BESIDE:
            self.tell(f"side by side needs {BESIDE} columns, and there are {diff.room}; enter opens the seal")
        else:
            diff.toggle_split()

    def do_blanks(self) -> None:
        self.diff.toggle_blanks()
        self.tell(f"white space {'shown' if self.diff.blanks else 'not shown'}")

    def do_next_hunk(self) -> None:
        self.diff.jump("hunk", 1)

    def do_previous_hunk(self) -> None:
        self.diff.jump("hunk", -1)

    def do_next_file(self) -> None:
        self.diff.jump("file", 1)

    def do_previous_file(self) -> None:
        self.diff.jump("file", -1)

    def do_seen(self) -> None:
        self.diff.toggle_seen()

    def colour(self, file: ChangedFile, repo_id: str, seal: str) -> None:
        """Find the roles (keyword, string, …) of the words in a changed file on a thread, and show their
        colours. The whole text at the seal is requested for this, because the patch alone does not show where
        a comment or a string begins."""
        is_known = file.path in self.diff.colours or self._coloured == (file.path, seal)
        if is_known or file.patch is None or len(file.patch) > TEXT_MAX:
            return
        self._coloured = file.path, seal
        app = cast("AskedApp", self.app)
        client, read = app.client, contents.file(repo_id, seal, file.path)

        def work() -> None:
            text = None
            if file.status != "removed":
                with suppress(SvcError):
                    blob, _ = client.read_cached(read) or client.fetch(read)
                    text = blob.content if blob.encoding == "utf-8" else None
            colours = colours_of(file, text)
            app.later(lambda: self._learn(file, seal, colours))

        app.run_worker(work, thread=True, group="changes", exit_on_error=False)

    def _learn(self, file: ChangedFile, seal: str, colours: FileColours) -> None:
        if self.is_attached and self.shows_seal(seal):
            self.diff.learn(file.path, colours)
        self._coloured = ("", "")

    def shows_seal(self, seal: str) -> bool:
        """Returns whether the comparison now shows the texts of this seal."""
        raise NotImplementedError

    def forget_colours(self) -> None:
        """Forget the colours, because the comparison is about to show other texts."""
        self._coloured = ("", "")
        self.diff.colours.clear()
