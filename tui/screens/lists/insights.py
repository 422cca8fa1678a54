"""The Insights tab: the dependencies of the shown seal, and the dependents of the repository."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from localstore.core.model.catalog.dependency import Dependencies, Dependency, Dependent
from tui import contents
from tui.actions import Action
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.text import Part, safe
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage


class Insights(Split):
    LIST = "insights"
    WAITING = "…"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._found: Dependencies | None = None
        self._dependents: list[Dependent] | None = None
        self._repos: dict[str, str] = {}

    def titled(self) -> tuple[Part, ...]:
        return (("Insights", "title"),)

    def shown(self) -> None:
        self.do_refresh()

    def moved(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo = self.of.repo.id
        if self.of.seal is not None:
            self.svc.load(contents.dependencies(repo, self.of.seal), self._depends)
        self.svc.load(contents.dependents(repo), self._needed)

    def _depends(self, dependencies: Dependencies, at: float) -> None:
        if dependencies.seal_id == self.of.seal:
            self._found = dependencies
            self.paint()

    def _needed(self, dependents: list[Dependent], at: float) -> None:
        self._dependents = dependents
        self.paint()

    def paint(self) -> None:
        rows: list[Item] = []
        self._repos = {}
        if self._found is not None:
            rows.append(heading("Dependencies", len(self._found.items)))
            for manifest in self._found.manifests:
                rows.append(Item(None, ((safe(manifest.path), "dim"),)))
                if manifest.problem is not None:
                    rows.append(Item(None, ((f"  not read: {safe(manifest.problem)}", "warn"),)))
                rows += [
                    self._row(number, dependency)
                    for number, dependency in enumerate(self._found.items)
                    if dependency.path == manifest.path
                ]
            if not self._found.manifests:
                rows.append(Item(None, (("no manifests in this seal", "dim"),)))
            if not self._found.complete:
                rows.append(Item(None, (("there are more than the server reads", "warn"),)))
            rows.append(Item(None, (("", "text"),)))
        if self._dependents is not None:
            rows.append(heading("Dependents", len(self._dependents)))
            rows += [self._dependent(dependent) for dependent in self._dependents]
            if not self._dependents:
                rows.append(Item(None, (("nothing that you see depends on it", "dim"),)))
        self.listed.show(sequence(rows))
        self.rest()

    def preview_of(self, key: Hashable) -> None:
        """Preview the facts of a dependency, or a repository that depends on this one."""
        from tui.screens.lists.glance import Glance

        for dependent in self._dependents or ():
            if f"dependent {dependent.id}" == key:
                Glance(self, key, dependent.id).begin()
        for number, dependency in enumerate(self._found.items if self._found is not None else ()):
            if f"dependency {number}" == key:
                self.show_preview(key, safe(dependency.name), _facts_of(dependency))

    def _row(self, number: int, dependency: Dependency) -> Item:
        key = f"dependency {number}"
        if dependency.repo is not None:
            self._repos[key] = dependency.repo.full_name
        left: tuple[Part, ...] = (
            (f"  {safe(dependency.name)} ", "accent" if dependency.repo else "text"),
            (safe(dependency.requirement), "dim"),
        )
        right: tuple[Part, ...] = ((f"{dependency.ecosystem} ", "dim"),)
        if dependency.advisories:
            count = len(dependency.advisories)
            many = f"{count} advisor{'y' if count == 1 else 'ies'}  "
            sure = any(hit.certain for hit in dependency.advisories)
            right = ((many if sure else f"perhaps {many}", "bad" if sure else "warn"), *right)
        return Item(key, left, right, dependency.name)

    def _dependent(self, dependent: Dependent) -> Item:
        key = f"dependent {dependent.id}"
        self._repos[key] = dependent.full_name
        parts: tuple[Part, ...] = (
            (f"  {safe(dependent.full_name)}  ", "accent"),
            (safe(dependent.description), "text"),
        )
        return Item(key, parts, (), dependent.full_name)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if (name := self._repos.get(str(event.key))) is not None:
            self.svc.run_words(["repo", "view", name])


def _facts_of(dependency: Dependency) -> list[Row | tuple[Part, ...]]:
    facts = (
        ("versions  ", dependency.requirement or "any", "text"),
        ("exactly   ", dependency.version or "", "text"),
        ("from      ", dependency.ecosystem, "text"),
        ("declared  ", dependency.path, "text"),
        ("for       ", "development" if dependency.development else "", "text"),
        ("here      ", dependency.repo.full_name if dependency.repo is not None else "", "accent"),
    )
    rows: list[Row | tuple[Part, ...]] = [((safe(dependency.name), "title"),), (("", "text"),)]
    rows += [((name, "dim"), (safe(value), role)) for name, value, role in facts if value]
    if dependency.advisories:
        rows += [(("", "text"),), (("Advisories ", "title"), (str(len(dependency.advisories)), "dim"))]
    for hit in dependency.advisories:
        sure: Part = ("✗ ", "bad") if hit.certain else ("? ", "warn")
        rows.append((sure, (safe(hit.id), "accent"), (f"  {safe(hit.summary)}", "text")))
    return rows
