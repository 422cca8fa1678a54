"""What the tabs of a repository use of the screen on which they are."""

from __future__ import annotations

from collections.abc import Callable

from localstore.core.model.ref import Ref
from localstore.core.model.repo import Repo
from tui.screens.base import READING_SECONDS, Base


class RepoPage(Base):
    """A screen about one repository at one seal. `tui.screens.repo.RepoScreen` adds the tabs."""

    def __init__(self, repo: Repo) -> None:
        super().__init__()
        self.repo = repo
        self.ref_name = repo.default_branch
        self.refs: list[Ref] = []
        self.read = False  # whether the branches are
        self.seal: str | None = None  # that all tabs show, None without one
        self.back_words = ""  # how many seals back that is, in words; "" where that is not known
        self._waits: Callable[[], None] | None = None  # what waits for the branches

    @property
    def head(self) -> str | None:
        """The newest seal of the shown branch, or the seal of the shown tag. None if there is none."""
        return next((ref.head for ref in self.refs if ref.name == self.ref_name), None)

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def once_read(self, act: Callable[[], None]) -> None:
        """Call `act` once the branches are loaded. Until then, keys are kept back for the screen that `act`
        opens."""
        self._waits = act
        self.hold_keys(READING_SECONDS)

    def do_ref(self) -> None:
        """Let the user choose a branch or tag."""
        raise NotImplementedError

    def act_in_code(self, name: str) -> None:
        """Show the tab Code, and run an action there. `name`: the method of the tab that runs it."""
        raise NotImplementedError

    def open_rule(self, pattern: str, *, exists: bool) -> None:
        """Show the tab Settings with the cursor on a protection rule. `pattern`: the branches that it is
        about. `exists`: False to begin a new rule for them."""
        raise NotImplementedError

    def stay_in_code(self) -> None:
        """Called when the user has chosen something in the tab Code. Esc does not return from there to the
        tab whose key has led there any more."""

    def return_to_origin(self) -> bool:
        """Show the tab again whose key or link has led to this one. Returns False if none has."""
        return False

    def lead_to_tab(self, number: int) -> None:
        """Show another tab, because a link of this one leads there. Esc returns to the link."""
        raise NotImplementedError

    def led_to(self, path: str | None) -> bool:
        """Returns whether a link has led to this file in the tab Code."""
        return False

    def shows_other_branch(self, name: str) -> bool:
        return self.ref_name != name

    def go_to(self, name: str, seal: str | None) -> None:
        """Show the repository at another branch, tag or seal. `name`: the name of the branch or tag."""
        if seal != self.seal:
            self.back_words = ""
        self.ref_name, self.seal = name, seal
