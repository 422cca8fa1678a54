"""The first screen: the inbox and the user's repositories, that of the linked folder first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult

from localstore.core.model.collaboration.inbox import InboxItem
from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action, spoken
from tui.screens.base import Base
from tui.screens.lists.inbox import open_subject, row
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines, sequence

SHOWN = 8  # rows of the inbox; `i` shows the others


class Home(Base):
    FOLLOWS_LATER = True
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),
        Action("account", ("a",), "account", "svc auth status", footer=True),
        Action("back", ("q", "escape"), "quit", footer=True),
    )

    def __init__(self) -> None:
        super().__init__()
        self._repos: dict[str, Repo] | None = None
        self._inbox: list[InboxItem] = []

    def content(self) -> ComposeResult:
        empty = "no repositories yet; make one: svc repo create NAME"
        yield Lines(empty=empty, waiting="asking the server", id="repos")

    def title_parts(self) -> Sequence[Part]:
        client = self.svc.client
        who = f"@{client.account} · " if client.account else ""
        return ((" svc", "title"), (f"  {safe(who)}{safe(client.origin.partition('://')[2])}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(self.svc.repos, self._paint_repos, self._not_answered)
        if self.svc.client.account:
            self.svc.load(reads.inbox(), self._paint_inbox)

    def about(self) -> list[str]:
        mine = self.svc.place.repo_id
        ordered = sorted(self._repos or (), key=lambda repo_id: repo_id != mine)
        return [*ordered, *(one.repo.id for one in self._inbox if one.repo is not None)]

    def _not_answered(self, error: BaseException) -> None:
        repos = self.query_one("#repos", Lines)
        if self._repos is None:
            repos.waiting = "the server did not answer; r asks again"
            repos.refresh()

    def _paint_inbox(self, found: list[InboxItem], at: float) -> None:
        self._inbox = found
        self.listen()
        self.paint()

    def _paint_repos(self, repos: list[Repo], at: float) -> None:
        first = self._repos is None
        self._repos = {repo.id: repo for repo in repos}
        self.listen()
        self.paint(first)

    def paint(self, first: bool = False) -> None:
        """Paint the data; with `first` the cursor goes to the first repository."""
        if self._repos is None:
            return
        place, now = self.svc.place, self.svc.clock()
        ordered = sorted(self._repos.values(), key=lambda repo: repo.id != place.repo_id)
        items: list[Item] = []
        if self.svc.client.account:
            items.append(Item(None, ((f"Inbox {len(self._inbox)}", "title"),)))
            items += [row(one, now) for one in self._inbox[:SHOWN]]
            if len(self._inbox) > SHOWN:
                items.append(Item(None, ((f"{len(self._inbox) - SHOWN} more: i", "dim"),)))
        items.append(Item(None, ((f"Repositories {len(ordered)}", "title"),)))
        width = min(40, max((len(repo.full_name) for repo in ordered), default=0) + 2)
        for repo in ordered:
            here = ""
            if repo.id == place.repo_id and place.folder:
                on = f" on {place.branch}" if place.branch not in ("", repo.default_branch) else ""
                here = f"  here{on}: {_short(str(place.folder))}"
            items.append(
                Item(
                    repo.id,
                    (
                        (safe(repo.full_name).ljust(width), "text"),
                        (f"{repo.visibility} {repo.kind}".ljust(18), "dim"),
                        (safe(repo.default_branch), "dim"),
                        (safe(here), "accent"),
                    ),
                    ((ago(repo.updated_at, now), "dim"), (" ", "text")),
                    repo.full_name,
                )
            )
        if not ordered:
            items.append(Item(None, (("no repositories yet; make one: svc repo create NAME", "dim"),)))
        cursor = ordered[0].id if first and ordered else None
        self.query_one("#repos", Lines).show(sequence(items), cursor)

    def do_back(self) -> None:
        """Quit; esc only says how, since it is pressed several times to leave what is open."""
        if self.leave_filter():
            return
        if self.svc.pressed == "escape":
            keys = next(action.keys for action in self.svc.actions() if action.id == "back")
            other = next((key for key in keys if key != "escape"), "ctrl+c")
            self.say(f"{spoken(other)} quits", "dim")
        else:
            self.svc.exit()

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.repo import RepoScreen

        of_inbox = next((one for one in self._inbox if one.id == event.key), None)
        if of_inbox is not None:
            open_subject(self.svc, of_inbox)
        elif self._repos is not None:
            self.app.push_screen(RepoScreen(self._repos[str(event.key)]))


def _short(folder: str) -> str:
    home = str(Path.home())
    return "~" + folder[len(home) :] if folder.startswith(home) else folder
