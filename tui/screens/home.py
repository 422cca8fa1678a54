"""The first screen: the repositories one works with, that of the linked folder first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from textual.app import ComposeResult

from localstore.core.model.repo import Repo
from tui import reads
from tui.actions import Action
from tui.screens.base import Base
from tui.text import Part, ago, safe
from tui.widgets.lines import Item, Lines, sequence


class Home(Base):
    ACTIONS = (Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),)

    def content(self) -> ComposeResult:
        yield Lines(empty="no repositories yet; make one: svc repo create NAME", id="repos")

    def title_parts(self) -> Sequence[Part]:
        client = self.svc.client
        who = f"@{client.account} · " if client.account else ""
        return ((" svc", "title"), (f"  {safe(who)}{safe(client.origin.partition('://')[2])}", "dim"))

    def on_mount(self) -> None:
        super().on_mount()
        self.do_refresh()

    def do_refresh(self) -> None:
        self.svc.load(reads.repos(), self.paint)

    def paint(self, repos: list[Repo], at: float) -> None:
        place = self.svc.place
        ordered = sorted(repos, key=lambda repo: repo.id != place.repo_id)
        items = [Item(None, ((f"Repositories {len(repos)}", "title"),))]
        width = min(40, max((len(repo.full_name) for repo in repos), default=0) + 2)
        for repo in ordered:
            here = f"  here: {_short(str(place.folder))}" if repo.id == place.repo_id and place.folder else ""
            items.append(
                Item(
                    repo.id,
                    (
                        (safe(repo.full_name).ljust(width), "text"),
                        (f"{repo.visibility} {repo.kind}".ljust(18), "dim"),
                        (safe(repo.default_branch), "dim"),
                        (safe(here), "accent"),
                    ),
                    ((ago(repo.updated_at, self.svc.clock()), "dim"), (" ", "text")),
                    repo.full_name,
                )
            )
        self.query_one("#repos", Lines).show(sequence(items))
        self._repos = {repo.id: repo for repo in repos}

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        from tui.screens.repo import RepoScreen

        self.app.push_screen(RepoScreen(self._repos[str(event.key)]))


def _short(folder: str) -> str:
    home = str(Path.home())
    return "~" + folder[len(home) :] if folder.startswith(home) else folder
