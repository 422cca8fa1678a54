"""The Insights tab: what the seal at hand depends on, and what depends on the repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.catalog.dependency import Dependencies, Dependency, Dependent
from tui import contents
from tui.actions import Action
from tui.screens.view import View
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.screens.repo import RepoScreen


class Insights(View):
    ACTIONS = (Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),)

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._found: Dependencies | None = None
        self._dependents: list[Dependent] | None = None
        self._repos: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        yield Lines(id="insights")

    def shown(self) -> None:
        self.do_refresh()

    def moved(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        repo = self.of.repo.id
        if self.of.seal is not None:
            self.svc.load(contents.dependencies(repo, self.of.seal), self._depends)
        self.svc.load(contents.dependents(repo), self._needed)

    def _depends(self, found: Dependencies, at: float) -> None:
        if found.seal_id == self.of.seal:
            self._found = found
            self._paint()

    def _needed(self, found: list[Dependent], at: float) -> None:
        self._dependents = found
        self._paint()

    def _paint(self) -> None:
        rows: list[Item] = []
        self._repos = {}
        if self._found is not None:
            rows.append(_heading("Dependencies", len(self._found.items)))
            for manifest in self._found.manifests:
                rows.append(Item(None, ((safe(manifest.path), "dim"),)))
                if manifest.problem is not None:
                    rows.append(Item(None, ((f"  not read: {safe(manifest.problem)}", "warn"),)))
                rows += [
                    self._row(number, one)
                    for number, one in enumerate(self._found.items)
                    if one.path == manifest.path
                ]
            if not self._found.manifests:
                rows.append(Item(None, (("no manifests in this seal", "dim"),)))
            if not self._found.complete:
                rows.append(Item(None, (("there are more than the server reads", "warn"),)))
            rows.append(Item(None, (("", "text"),)))
        if self._dependents is not None:
            rows.append(_heading("Dependents", len(self._dependents)))
            rows += [self._dependent(one) for one in self._dependents]
            if not self._dependents:
                rows.append(Item(None, (("nothing that you see depends on it", "dim"),)))
        self.query_one("#insights", Lines).show(sequence(rows))

    def _row(self, number: int, one: Dependency) -> Item:
        key = f"dependency {number}"
        if one.repo is not None:
            self._repos[key] = one.repo.full_name
        left: tuple[Part, ...] = (
            (f"  {safe(one.name)} ", "accent" if one.repo else "text"),
            (safe(one.requirement), "dim"),
        )
        right: tuple[Part, ...] = ((f"{one.ecosystem} ", "dim"),)
        if one.advisories:
            many = f"{len(one.advisories)} advisor{'y' if len(one.advisories) == 1 else 'ies'}  "
            sure = any(hit.certain for hit in one.advisories)
            right = ((many if sure else f"perhaps {many}", "bad" if sure else "warn"), *right)
        return Item(key, left, right, one.name)

    def _dependent(self, one: Dependent) -> Item:
        key = f"dependent {one.id}"
        self._repos[key] = one.full_name
        left: tuple[Part, ...] = ((f"  {safe(one.full_name)}  ", "accent"), (safe(one.description), "text"))
        return Item(key, left, (), one.full_name)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if (name := self._repos.get(str(event.key))) is not None:
            self.svc.run_words(["repo", "view", name])


def _heading(name: str, count: int) -> Item:
    return Item(None, ((f"{name} ", "title"), (str(count), "dim")))
