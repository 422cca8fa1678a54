"""The keys that work in a comparison, for every screen that shows one."""

from __future__ import annotations

from tui.actions import Action
from tui.widgets.diff import Diff

DIFF_ACTIONS = (
    Action("split", ("v",), "old and new side by side", "svc diff"),
    Action("blanks", ("W",), "white space", "svc diff"),
    Action("next_hunk", ("J",), "next hunk"),
    Action("previous_hunk", ("K",), "previous hunk"),
    Action("next_file", ("right_curly_bracket",), "next file"),
    Action("previous_file", ("left_curly_bracket",), "previous file"),
    Action("seen", ("m",), "seen: fold the file"),
)


class Differing:
    """Runs the actions DIFF_ACTIONS on the comparison `diff`."""

    @property
    def diff(self) -> Diff:
        raise NotImplementedError

    def tell(self, text: str) -> None:
        """Show a message in the line of keys."""
        raise NotImplementedError

    def do_split(self) -> None:
        self.diff.toggle_split()

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
