"""The tab Insights of a repository: recent work on the shown branch, the dependencies of its seal, and the
repositories that depend on this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from localstore.core.model.dependency import Dependencies, Dependency, Dependent
from localstore.core.model.history import SealSummary
from localstore.core.model.run import Run, state_of
from localstore.core.words import count
from svc.console.table import size
from tui import contents
from tui.actions import Action
from tui.blocks import Block, lay_blocks
from tui.charts import WEEK, bar, by_week, columns_of, sparkline
from tui.contents import Kind, Times
from tui.screens.split import PANE, SPLIT_ACTIONS, Split
from tui.text import Part, brief, fit, fold, safe
from tui.texts import first_words
from tui.widgets.lines import Item, Lines, heading, sequence
from tui.wording import unread_words

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

Line = tuple[Part, ...]
WEEKS = 12  # that the activity is about
NAME, BAR = 20, 30  # columns of a name, and of a bar, in a preview
HIGH = 6  # rows of a chart
COLUMNS_FROM, WEEK_WORDS = 3, 14  # weeks with data from which a chart has columns; columns of a week in words
NEWEST, AUTHORS, KINDS = 8, 8, 8  # seals, people and kinds of files in a preview
GOES = {"checks": 4, "issues": 3, "proposals": 3}  # chart → number of the tab that it is about
HISTORY = ("seals", "people")  # charts that the history of all files is about
OPENS = {
    **dict.fromkeys(HISTORY, "open the history"),
    "checks": "open Workflows",
    **dict.fromkeys(("issues", "proposals"), "open Issues"),
}  # chart → what enter does
CHARTS = ("seals", "people", "checks", "issues", "proposals")
BLANK: Line = (("", "text"),)


class Insights(Split):
    LIST = "insights"
    OF_SEAL = True
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo view {dependent}", footer=True),
        PANE,
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._seals: list[SealSummary] | None = None
        self._runs: list[Run] | None = None
        self._found: Dependencies | None = None
        self._dependents: list[Dependent] | None = None
        self._repos: dict[str, str] = {}
        self._issues: Times | None = None
        self._proposals: Times | None = None
        self._kinds: tuple[str, list[Kind]] | None = None  # (seal, the kinds of its files)
        self._unread = ""  # why something was not read, "" while everything was
        self._asked_kinds = ""  # the seal whose files were requested

    def make_title(self) -> tuple[Part, ...]:
        return (("Insights", "title"),)

    def label_of(self, action: Action) -> str:
        if action.id == "pane":
            return self.pane_label()
        if action.id == "open":
            key = str(self.listed.key)
            return "open the repository" if key in self._repos else OPENS.get(key, "")
        return action.label

    def facts(self) -> dict[str, str]:
        name = self._repos.get(str(self.listed.key))
        return {"dependent": name} if name is not None else {}

    def open_tab(self) -> None:
        self.do_refresh()

    def load_seal(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo = self.of.repo.id
        if self.of.seal is not None:
            self.svc.load(contents.history(repo, self.of.ref_name, None), self._take_seals, self._miss)
            self.svc.load(contents.dependencies(repo, self.of.seal), self._take_dependencies, self._miss)
        self.svc.load(contents.runs(repo), self._take_runs, self._miss)
        self.svc.load(contents.dependents(repo), self._take_dependents, self._miss)
        self.svc.load(contents.issue_times(repo), self._take_issues, self._miss)
        self.svc.load(contents.proposal_times(repo), self._take_proposals, self._miss)

    def _ask_for_kinds(self) -> None:
        """Request the kinds of files in the shown seal. Does nothing if they were requested already."""
        seal = self.of.seal
        if seal is not None and self._asked_kinds != seal:
            self._asked_kinds = seal
            self.svc.load(
                contents.kinds(self.of.repo.id, seal), lambda kinds, at: self._learn_kinds(seal, kinds)
            )

    def _learn_kinds(self, seal: str, kinds: list[Kind]) -> None:
        self._kinds = seal, kinds
        self.renew()

    def _take_issues(self, times: Times, at: float) -> None:
        self._issues = times
        self._paint_answer()

    def _take_proposals(self, times: Times, at: float) -> None:
        self._proposals = times
        self._paint_answer()

    def _take_seals(self, seals: list[SealSummary], at: float) -> None:
        self._seals = seals
        self._paint_answer()

    def _take_runs(self, runs: list[Run], at: float) -> None:
        self._runs = runs
        self._paint_answer()

    def _take_dependencies(self, dependencies: Dependencies, at: float) -> None:
        if dependencies.seal_id == self.of.seal:
            self._found = dependencies
            self._paint_answer()

    def _take_dependents(self, dependents: list[Dependent], at: float) -> None:
        self._dependents = dependents
        self._paint_answer()

    def _miss(self, error: BaseException) -> None:
        self._unread = unread_words(self.svc.news.state)
        self._paint_answer()

    def _missing(self, width: int) -> list[Line]:
        """Returns rows in place of a chart whose data has not arrived."""
        return list(fold([(self._unread or self.WAITING, "dim")], width))

    def _paint_answer(self) -> None:
        """Paint the list and the preview again after an answer has arrived, because both may show it."""
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
                    self._row(dependency)
                    for dependency in self._found.items
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
        """Returns the seals of the last weeks, the newest first, as far as they were read."""
        begin = datetime.fromtimestamp(self.svc.clock(), UTC) - WEEKS * WEEK
        return [seal for seal in self._seals or () if datetime.fromisoformat(seal.created_at) > begin]

    @property
    def _people(self) -> list[tuple[str, int]]:
        """Returns (handle, number of seals) of each person who made seals in the last weeks, the most active
        first."""
        return Counter(seal.provenance.who.handle or "?" for seal in self._recent).most_common()

    def _activity(self) -> list[Item]:
        """Returns a row for each kind of work in the last weeks: seals, people, checks, issues, proposals. A
        row is there even before its data has arrived, so that the cursor stays on the first row."""
        waits: Line = (("not read" if self._unread else "…", "dim"),)
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
            words = f"  {int(100 * share)} % of {count(decided, 'run')}"
            none: Line = (("no run yet", "dim"),)
            checks = (*bar(share, 1, WEEKS, _role(share)), (words, "text")) if decided else none
        rows = [
            Item("seals", (("  seals      ", "text"), *seals), text="seals"),
            Item("people", (("  people     ", "text"), *names), text="people"),
            heading("Activity of the repository"),
            Item("checks", (("  checks     ", "text"), *checks), text="checks"),
        ]
        for name, times in (("issues", self._issues), ("proposals", self._proposals)):
            drawn = waits if times is None else self._row_of(times)
            rows.append(Item(name, ((f"  {name:<11}", "text"), *drawn), text=name))
        return rows

    def _row_of(self, times: Times) -> Line:
        """Returns the parts of a row about issues or proposals: a small chart of how many were opened in each
        week, and how many are open now."""
        chart = sparkline(by_week(times.opened, self.svc.clock(), WEEKS))
        return (*chart, (f"  {times.open}{'+' if times.more else ''} open", "text"))

    def _board(self, first: str) -> list[Line]:
        """Returns the rows of all charts, laid out beside each other. The chart `first` comes first."""
        blocks = {
            "seals": Block("Seals a week", self._seal_chart),
            "people": Block(f"Who sealed in {WEEKS} weeks", self._people_rows, str(len(self._people) or "")),
            "checks": Block("How often checks of the repository pass", self._check_rows),
            "issues": Block("Issues a week", lambda wide: self._times_rows(self._issues, wide)),
            "proposals": Block("Proposals a week", lambda wide: self._times_rows(self._proposals, wide)),
        }
        order = [first, *(name for name in blocks if name != first)]
        newest = Block("Newest seals", self._newest_rows)
        chosen = [blocks[first], newest] if first == "seals" else [blocks[first]]
        after = [] if first == "seals" else [newest]
        after += [
            Block("Sizes by kind of file", self._kind_rows),
            Block("Next", lambda wide: _helps(first)),
        ]
        return lay_blocks([*chosen, *(blocks[name] for name in order[1:]), *after], self.preview_width)

    def _seal_chart(self, width: int) -> list[Line]:
        """Returns the rows of a chart that shows how many seals were made in each week."""
        if self._seals is None and self.of.seal is not None:
            return self._missing(width)
        return self._chart([seal.created_at for seal in self._recent], width)

    def _times_rows(self, times: Times | None, width: int) -> list[Line]:
        """Returns the rows of a chart that shows how many issues or proposals were opened in each week. A
        line says how many are open and how many are closed."""
        if times is None:
            return self._missing(width)
        done = (f"{times.closed} closed", "dim")
        counts: Line = (
            (f"{times.open} open  ", "good"),
            done,
            ("  of the newest 200" if times.more else "", "dim"),
        )
        return [*self._chart(times.opened, width), counts]

    def _chart(self, times: Sequence[str], width: int) -> list[Line]:
        counts = by_week(times, self.svc.clock(), WEEKS)
        if not any(counts):
            return [((f"none in {WEEKS} weeks", "dim"),)]
        filled = [(WEEKS - 1 - at, count) for at, count in enumerate(counts) if count]
        if len(filled) == 1:  # a bar would compare with nothing
            weeks, number = filled[0]
            return [((f"{_week_words(weeks):<{WEEK_WORDS}}", "dim"), (str(number), "text"))]
        if len(filled) < COLUMNS_FROM:
            most, room = max(counts), max(6, min(BAR, width - WEEK_WORDS - 6))
            return [
                ((f"{_week_words(ago):<{WEEK_WORDS}}", "dim"), *bar(count, most, room), (f" {count}", "text"))
                for ago, count in reversed(filled)
            ]
        label = len(str(max(counts, default=0)))
        wide = max(1, min(6, (width - label - 1) // WEEKS - 1))
        chart = columns_of(counts, HIGH, wide)
        ruler = f"{WEEKS} weeks ago".ljust(WEEKS * (wide + 1) - 10) + "this week"
        return [*chart, ((" " * (label + 1) + ruler, "dim"),)]

    def _newest_rows(self, width: int) -> list[Line]:
        """Returns a row for each of the newest seals."""
        now = self.svc.clock()
        rows: list[Line] = []
        for seal in (self._seals or [])[:NEWEST]:
            who = f"  @{safe(seal.provenance.who.handle or '?')} {brief(seal.created_at, now)}"
            message = fit(
                [(safe(first_words(seal.message)) or "without a message", "text")],
                max(8, width - 10 - len(who)),
            )
            rows.append(((f"{seal.id[:8]}  ", "accent"), *message, (who, "dim")))
        return rows

    def _people_rows(self, width: int) -> list[Line]:
        """Returns a row with a bar for each person who made seals."""
        people = self._people
        rows: list[Line] = []
        most = max((count for _, count in people), default=0)
        wide = max(NAME // 2, *(len(name) + 1 for name, _ in people)) if people else NAME
        wide = min(wide, NAME + 4)
        room = max(8, min(BAR, width - wide - 6))
        for name, seals in people[:AUTHORS]:
            words = safe(name)[: wide - 1]
            drawn = bar(seals, most, room) if len(people) > 1 else ()  # else it compares with nothing
            rows.append(((f"@{words:<{wide}}", "person"), *drawn, (f" {seals}", "text")))
        more = len(people) - AUTHORS
        return [*rows, ((f"and {more} more", "dim"),)] if more > 0 else rows

    def _check_rows(self, width: int) -> list[Line]:
        """Returns a row for each check, with how often it has passed and with its newest runs, the newest on
        the right. Checks that fail most come first."""
        if self._runs is None:
            return self._missing(width)
        named: dict[str, list[Run]] = {}
        for run in self._runs or ():
            named.setdefault(run.name, []).append(run)
        shares = sorted((_passing(runs)[0], name) for name, runs in named.items() if _passing(runs)[1])
        if not shares:
            return [(("no run has passed or failed yet; :repo run create records one", "dim"),)]
        longest = max(len(safe(name)) for _, name in shares) + 1
        wide = max(8, min(longest, width - WEEKS - 16))
        room = max(6, min(BAR, width - wide - WEEKS - 9))
        rows: list[Line] = []
        for share, name in shares:
            signs = [_sign(run) for run in reversed(named[name][:WEEKS])]
            words = (f" {int(100 * share):>3} %  ", "text")
            title = safe(name)
            title = title if len(title) < wide else title[: wide - 2] + "…"
            rows.append(((f"{title:<{wide}}", "text"), *bar(share, 1, room, _role(share)), words, *signs))
        return [*rows, (("the last runs of each, oldest to newest", "dim"),)]

    def _kind_rows(self, width: int) -> list[Line]:
        """Returns a row for each kind of file in the shown seal. Its bar shows the sum of the sizes."""
        kinds = self._kinds
        if kinds is None or kinds[0] != self.of.seal or not kinds[1]:
            return []
        whole = sum(kind.size for kind in kinds[1])
        most = max(kind.size for kind in kinds[1])
        room = max(6, min(BAR, width - 34))
        return [
            (
                (f"{safe(kind.name)[:9]:<10}", "text"),
                *bar(kind.size, most, room),
                (f" {_percent(kind.size, whole):>4}  ", "text"),
                (f"{size(kind.size):>8}  {count(kind.files, 'file')}", "dim"),
            )
            for kind in kinds[1][:KINDS]
        ]

    def preview_of(self, key: Hashable) -> None:
        """Show the preview of the row with this key: the charts, the facts about a dependency, or the preview
        of a repository that depends on this one."""
        from tui.screens.lists.glance import Glance

        if isinstance(key, str) and key in CHARTS:
            self._ask_for_kinds()
            self.show_preview(key, key, self._board(key))
        for dependent in self._dependents or ():
            if f"dependent {dependent.id}" == key:
                Glance(self, key, dependent.id).begin()
        for dependency in self._found.items if self._found is not None else ():
            if _key_of(dependency) == key:
                self.show_preview(key, safe(dependency.name), _facts_of(dependency))

    def _row(self, dependency: Dependency) -> Item:
        key = _key_of(dependency)
        if dependency.repo is not None:
            self._repos[key] = dependency.repo.full_name
        left: tuple[Part, ...] = (
            (f"  {safe(dependency.name)} ", "accent" if dependency.repo else "text"),
            (safe(dependency.requirement), "dim"),
        )
        right: tuple[Part, ...] = ((f"{dependency.ecosystem} ", "dim"),)
        if dependency.advisories:
            many = f"{count(len(dependency.advisories), 'advisory', 'advisories')}  "
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
        elif event.key in HISTORY:
            self.of.act_in_code("show_history_of_branch")
        elif (number := GOES.get(str(event.key))) is not None:
            self.of.lead_to_tab(number)


def _key_of(dependency: Dependency) -> str:
    return f"dependency {dependency.path} {dependency.ecosystem} {dependency.name} {dependency.requirement}"


def _week_words(ago: int) -> str:
    """Returns a week in words. `ago`: how many weeks ago it was, with 0 for the present one."""
    return ("this week", "last week")[ago] if ago < 2 else f"{ago} weeks ago"


def _passing(runs: Sequence[Run]) -> tuple[float, int]:
    """Returns which share of the completed runs has passed, and the number of these runs. Only runs that
    passed or failed are counted."""
    states = Counter(state_of(run.status, run.conclusion) for run in runs)
    decided = states["pass"] + states["fail"]
    return (states["pass"] / decided if decided else 0.0), decided


def _percent(part: int, whole: int) -> str:
    return f"{round(100 * part / whole)} %" if whole else ""


def _helps(chart: str) -> list[Line]:
    """Returns a line that says where enter leads from the row of a chart."""
    words = {
        "seals": "opens the whole history",
        "people": "opens the whole history",
        "checks": "opens Workflows, where each run is",
        "issues": "opens Issues",
    }
    return [(("enter ", "accent"), (words.get(chart, "opens Issues, where p lists proposals"), "dim"))]


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
