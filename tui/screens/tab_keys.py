"""The keys of a repository's tabs, for its screen and for the screens that its rows open."""

from __future__ import annotations

from tui.actions import Action
from tui.screens.base import Base

TAB_NAMES = (
    *("Overview", "Code", "Issues", "Workflows"),
    *("Releases", "Security", "Insights", "Settings"),
)
PRINTS = {"Overview": "svc repo view {repo}", "Issues": "svc issue list"}
"""Commands that print what a tab shows."""
TAB_ACTIONS = tuple(
    Action(f"tab_{number}", (str(number),), f"{name} tab", PRINTS.get(name, ""))
    for number, name in enumerate(TAB_NAMES, 1)
)
TAB = "do_tab_"  # begins the names of the methods of these actions


class LeadsToTabs(Base):
    """A screen about one thing of a repository, such as an issue. The keys of tabs leave it for the tab."""

    def handler(self, name: str) -> object:
        """Returns the method that runs an action."""
        if name.startswith(TAB):
            return lambda: self._go_to_tab(int(name.removeprefix(TAB)))
        return getattr(self, name, None)

    def _go_to_tab(self, number: int) -> None:
        """Show a tab of the repository."""
        repo, _ = self.subject()
        if repo is not None:
            self.svc.show_tab_of(repo, number)
