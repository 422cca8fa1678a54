"""The base class of the tabs of a repository's screen."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from textual.containers import Vertical

from tui.actions import Action
from tui.texts import Texts
from tui.widgets.lines import Lines

if TYPE_CHECKING:
    from tui.asked import AskedApp
    from tui.screens.repo_page import RepoPage


class View(Vertical):
    """A tab of a repository's screen. `load_seal()`: called when the screen shows another seal. `open_tab()`:
    called when the tab is selected. `back()`: called at esc. It returns True if it has closed something
    inside the tab."""

    DEFAULT_CSS = "View { height: 1fr; width: 1fr; }"
    ACTIONS: tuple[Action, ...] = ()

    OF_SEAL = False  # whether it shows a seal, so that another branch or tag can be chosen

    _is_complete = False  # whether its lists are known to exist
    texts: Texts | None = None  # those of the tab, if it shows some

    def __init__(self, of: RepoPage) -> None:
        super().__init__()
        self.of = of

    @property
    def svc(self) -> AskedApp:
        return cast("AskedApp", self.app)

    def actions(self) -> tuple[Action, ...]:
        """Returns the actions for what the tab shows now."""
        return self.ACTIONS

    @property
    def opens(self) -> bool:
        """Whether the key enter does something on the rows of the tab."""
        return hasattr(self, "on_lines_chosen")

    def order_hints(self, hints: list[tuple[Action, str]]) -> list[tuple[Action, str]]:
        """Returns the actions of the line of keys and their labels in the order in which a narrow screen
        keeps them."""
        return hints

    def mine(self) -> bool:
        """Returns whether the account is the author of what the row under the cursor shows."""
        return False

    def expect_new(self, noun: str, name: str) -> None:
        """Called when the user has made an issue, a proposal or a release. `noun`: which of these. `name`:
        its title or version. A list then puts its cursor on the new row, once it has read its rows again."""

    def elsewhere(self, key: str) -> str:
        """Returns a sentence that says where a key without an action here does something. Returns "" if it
        does nothing anywhere."""
        return ""

    def load_seal(self) -> None:
        """Called when the screen shows another seal."""

    def open_tab(self) -> None:
        """Called when the tab is selected."""

    def do_refresh(self) -> None:
        """Ask the server again for what the tab shows."""
        self.of.do_refresh()

    def read_missing(self) -> None:
        """Called when the user or the app asks the server again. Requests what could not be read before."""

    def say_unread(self, text: str) -> None:
        """Called when something that the tab shows could not be read. `text`: why."""

    def facts(self) -> dict[str, str]:
        """Returns what the tab shows, as values for the parameters of commands, by parameter name. See
        `Base.facts`."""
        return {}

    def queue_changed(self) -> None:
        """Called when the actions in the outbox have changed."""

    @property
    def is_complete(self) -> bool:
        """Whether the lists of the tab exist already. They are made a moment after the tab is mounted."""
        if not self._is_complete:
            self._is_complete = bool(self.query(Lines))
        return self._is_complete

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. See `Base.label_of`."""
        return action.label

    def command_of(self, action: Action) -> str:
        """Returns the command that does what an action does now. See `Base.command_of`."""
        return action.command

    def acting(self, action: str) -> None:
        """Called with the id of an action before it runs."""

    def path_of(self, target: str) -> str | None:
        """Returns the path of the file that a link in the tab leads to. Returns None if it leads to no
        file."""
        return None

    def go_to(self, target: str) -> bool:
        """Go where a link in the tab leads. Returns False if it is none of the tab's own links."""
        return False

    def here(self) -> Callable[[], None] | None:
        """Returns a function that shows again what the tab shows now, after a link has led elsewhere in the
        tab. Returns None if there is nothing to go back to."""
        return None

    def link_label(self, target: str) -> str:
        """Returns what enter does on one of the tab's own links, for the line of keys. Returns "" for other
        links."""
        return ""

    def tab_name(self) -> str:
        """Returns the name under which the tab is shown now. Returns "" for its usual name."""
        return ""

    def count(self) -> str | None:
        """Returns the number of items in the tab as text, which is shown after its name. Returns "" for none,
        and None while the number is unknown."""
        return None

    def leave_filter(self) -> bool:
        """Called at esc. Clears the filter. Returns False if none was set."""
        return self.of.leave_filter()

    def hides_rows(self) -> bool:
        """Returns whether a filter hides rows."""
        lines = self.of.lines
        return lines is not None and lines.filtered

    def back(self) -> bool:
        return False
