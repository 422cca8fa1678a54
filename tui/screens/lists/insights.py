"""The Insights tab: what was done lately on the shown branch, the dependencies of its seal, and the
dependents of the repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from localstore.core.model.dependency import Dependencies, Dependency, Dependent
from localstore.core.model.history import SealSummary
from localstore.core.model.run import Run, state_of
from tui import contents
from tui.actions import Action
from tui.charts import WEEK, bar, by_week, columns_of, sparkline
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.text import Part, brief, safe
from tui.texts import first_words
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

Line = tuple[Part, ...]
WEEKS = 12  # that the activity is about
NAME, BAR = 20, 24  # columns of a name, and of a bar, in a preview
HIGH = 6  # rows of a chart
NEWEST = 8  # seals below the chart, at least
BLANK: Line = (("", "text"),)


class Insights(Split):
    LIST = "insights"
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo view {repo}", footer=True),
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._seals: list[SealSummary] | None = None
        self._runs: list[Run] | None = None
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
            self.svc.load(contents.history(repo, self.of.ref_name, None), self._sealed)
            self.svc.load(contents.dependencies(repo, self.of.seal), self._depends)
        self.svc.load(contents.runs(repo), self._checked)
        self.svc.load(contents.dependents(repo), self._needed)

    def _sealed(self, seals: list[SealSummary], at: float) -> None:
        self._seals = seals
        self._changed()

    def _checked(self, runs: list[Run], at: float) -> None:
        self._runs = runs
        self._changed()

    def _depends(self, dependencies: Dependencies, at: float) -> None:
        if dependencies.seal_id == self.of.seal:
            self._found = dependencies
            self._changed()

    def _needed(self, dependents: list[Dependent], at: float) -> None:
        self._dependents = dependents
        self._changed()

    def _changed(self) -> None:
        """Paint an answer that has arrived, and request the preview again, which may depend on it."""
        self.renew()
        self.paint()

    def paint(self) -> None:
        rows: list[Item] = []
        self._repos = {}
        rows.append(heading(f"Activity of {safe(self.of.ref_name)}", None, f"{WEEKS} weeks "))
        rows += self._activity()
        rows.append(Item(None, BLANK))
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
            rows.append(Item(None, BLANK))
        if self._dependents is not None:
            rows.append(heading("Dependents", len(self._dependents)))
            rows += [self._dependent(dependent) for dependent in self._dependents]
            if not self._dependents:
                rows.append(Item(None, (("nothing that you see depends on it", "dim"),)))
        self.listed.show(sequence(rows))
        self.rest()

    # --- activity

    @property
    def _recent(self) -> list[SealSummary]:
        """The seals of the last weeks that were read, the newest first."""
        begin = datetime.fromtimestamp(self.svc.clock(), UTC) - WEEKS * WEEK
        return [seal for seal in self._seals or () if datetime.fromisoformat(seal.created_at) > begin]

    @property
    def _people(self) -> list[tuple[str, int]]:
        """(handle, number of seals) of each person who sealed in the last weeks, the most active first."""
        return Counter(seal.provenance.who.handle or "?" for seal in self._recent).most_common()

    def _activity(self) -> list[Item]:
        """A row for the seals, the people and the checks of the last weeks. The rows are shown before their
        data has arrived, so that the cursor stays on the first one."""
        waits: Line = (("…", "dim"),)
        seals, names, checks = waits, waits, waits
        if self._seals is not None or self.of.seal is None:
            recent, people = self._recent, self._people
            more = "+" if len(recent) >= contents.HISTORY else ""
            chart = sparkline(by_week((seal.created_at for seal in recent), self.svc.clock(), WEEKS))
            seals = (*chart, (f"  {len(recent)}{more}", "text"))
            who = "  ".join(f"@{safe(name)} {count}" for name, count in people)
            names = ((f"{len(people):<{WEEKS}}  ", "text"), (who, "person"))
        if self._runs is not None:
            share, decided = _passing(self._runs)
            words = f"  {int(100 * share)} % of {decided} run{'' if decided == 1 else 's'}"
            none: Line = (("no run yet", "dim"),)
            checks = (*bar(share, 1, WEEKS, _role(share)), (words, "text")) if decided else none
        return [
            Item("seals", (("  seals   ", "text"), *seals), text="seals"),
            Item("people", (("  people  ", "text"), *names), text="people"),
            Item("checks", (("  checks  ", "text"), *checks), text="checks"),
        ]

    def _seal_rows(self) -> list[Line]:
        """The seals of each week, and the newest ones."""
        now = self.svc.clock()
        counts = by_week((seal.created_at for seal in self._recent), now, WEEKS)
        wide = max(1, min(4, (self.preview_width - 6) // WEEKS - 1))
        chart = columns_of(counts, HIGH, wide)
        ruler = f"{WEEKS} weeks ago".ljust(WEEKS * (wide + 1) - 9) + "this week"
        rows: list[Line] = [(("Seals a week", "title"),), BLANK, *chart]
        rows += [((" " * len(chart[0][0][0]) + ruler, "dim"),), BLANK, (("Newest", "title"),)]
        fitting = max(NEWEST, self.preview.size.height - len(rows) - 2)
        for seal in (self._seals or [])[:fitting]:
            who = f"  @{safe(seal.provenance.who.handle or '?')} {brief(seal.created_at, now)}"
            rows.append(
                (
                    (f"{seal.id[:8]}  ", "accent"),
                    (safe(first_words(seal.message)) or "without a message", "text"),
                    (who, "dim"),
                )
            )
        return [*rows, BLANK, (("2 opens Code, where h is the whole history", "dim"),)]

    def _people_rows(self) -> list[Line]:
        """A bar for each person who sealed."""
        people = self._people
        rows: list[Line] = [((f"Who sealed in {WEEKS} weeks", "title"),), BLANK]
        most = max((count for _, count in people), default=0)
        wide = max(NAME, *(len(name) + 1 for name, _ in people)) if people else NAME
        wide = min(wide, max(NAME, self.preview_width - BAR - 6))
        for name, count in people:
            words = safe(name)[: wide - 1]
            rows.append(((f"@{words:<{wide}}", "person"), *bar(count, most, BAR), (f" {count}", "text")))
        return rows

    def _check_rows(self) -> list[Line]:
        """How often each check passed, those that fail most first, and its newest runs."""
        named: dict[str, list[Run]] = {}
        for run in self._runs or ():
            named.setdefault(run.name, []).append(run)
        shares = sorted((_passing(runs)[0], name) for name, runs in named.items() if _passing(runs)[1])
        wide = max(NAME, min(max((len(name) for _, name in shares), default=0) + 1, self.preview_width - 40))
        rows: list[Line] = [(("How often checks pass", "title"),), BLANK]
        for share, name in shares:
            signs = [_sign(run) for run in named[name][:WEEKS]]
            words = (f" {int(100 * share):>3} %  ", "text")
            title = safe(name)
            title = title if len(title) < wide else title[: wide - 2] + "…"
            rows.append(((f"{title:<{wide}}", "text"), *bar(share, 1, WEEKS, _role(share)), words, *signs))
        if not shares:
            rows.append((("no run has passed or failed yet: svc repo run create records one", "dim"),))
        return [*rows, BLANK, (("the newest run first; 4 opens Workflows", "dim"),)]

    def preview_of(self, key: Hashable) -> None:
        """Show the preview of a row: a chart, the facts of a dependency, or a glance at a repository that
        depends on this one."""
        from tui.screens.lists.glance import Glance

        if key == "seals":
            self.show_preview(key, "seals", self._seal_rows())
        elif key == "people":
            self.show_preview(key, "people", self._people_rows())
        elif key == "checks":
            self.show_preview(key, "checks", self._check_rows())
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
            right = ((f"✗ {many}" if sure else f"? perhaps {many}", "bad" if sure else "warn"), *right)
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
        elif event.key == "checks":
            self.svc.press("4")


def _passing(runs: Sequence[Run]) -> tuple[float, int]:
    """The share of runs that passed, and the number of those that passed or failed."""
    states = Counter(state_of(run.status, run.conclusion) for run in runs)
    decided = states["pass"] + states["fail"]
    return (states["pass"] / decided if decided else 0.0), decided


def _role(share: float) -> str:
    return "good" if share >= 0.9 else "warn" if share >= 0.5 else "bad"


def _sign(run: Run) -> Part:
    from tui.screens.proposal.words import sign_of_run

    words, role = sign_of_run(run)
    return words[0], role


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
    else:
        rows += [(("", "text"),), (("✓ ", "good"), ("no advisory that this server knows", "text"))]
    for hit in dependency.advisories:
        sure: Part = ("✗ ", "bad") if hit.certain else ("? ", "warn")
        rows.append((sure, (safe(hit.id), "accent"), (f"  {safe(hit.summary)}", "text")))
    return rows
