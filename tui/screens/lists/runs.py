"""Checks of the head, and the runs of a repository."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.collaboration import run as runs
from localstore.core.model.collaboration.check import SealChecks
from localstore.core.model.collaboration.run import Run
from localstore.core.model.repo import Repo
from tui import contents
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.facts import WithFacts, beside_facts, fact_rows
from tui.screens.proposal.words import checks_of, sign_of_check, sign_of_run
from tui.screens.split import SPLIT_ACTIONS, Split
from tui.text import Part, ago, brief, safe
from tui.texts import Texts, first_words, item
from tui.widgets.lines import Item, Lines, heading, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

CHANGES = (
    Action("rerun", ("u",), "run again", "svc repo run rerun {run}", "signed_in", True, "run.rerun"),
    Action("cancel", ("x",), "cancel", "svc repo run cancel {run}", "signed_in", True, "run.cancel"),
)


def rerun(on: Base, repo: Repo, run: Run) -> None:
    """Request another attempt of a completed run."""
    if run.status != "completed":
        on.say(f"{run.name} is not completed; x cancels it", "warn")
        return
    on.svc.act(runs.RERUN, about=repo.full_name, id=repo.id, run=run.id)
    on.say(f"asked for attempt {run.attempt + 1} of {run.name}")


def cancel(on: Base, repo: Repo, run: Run) -> None:
    """Complete a run as cancelled."""
    if run.status == "completed":
        on.say(f"{run.name} is completed; u runs it again", "warn")
        return
    on.svc.act(runs.CANCEL, about=repo.full_name, id=repo.id, run=run.id)
    on.say(f"asked to cancel {run.name}")


def _facts_of(run: Run, now: float) -> list[tuple[str, Part]]:
    """The facts about a run, each with its name."""
    took = _took(run.started_at, run.completed_at)
    facts = [
        ("seal", run.seal_id[:12], "accent"),
        ("branch", run.branch, "text"),
        ("attempt", str(run.attempt), "text"),
        ("reported", f"@{run.reported_by.handle or '?'} {ago(run.created_at, now)}", "text"),
        ("started", ago(run.started_at or "", now), "text"),
        ("completed", f"{ago(run.completed_at or '', now)}{took}", "text"),
    ]
    return [(name, (safe(value), role)) for name, value, role in facts if value]


def fact_items(run: Run, now: float) -> list[Item]:
    """The facts about a run as rows of a column."""
    return [row for name, value in _facts_of(run, now) for row in fact_rows(name, [value])]


def run_rows(
    run: Run, now: float, text_rows: Callable[[str], Sequence[Row]], beside: bool = False
) -> list[Row | tuple[Part, ...]]:
    """The state of a run, its facts and its summary. `beside`: the facts are left out, because they are in a
    separate column."""
    rows: list[Row | tuple[Part, ...]] = [
        (sign_of_run(run), (f"  {run.conclusion or run.status.replace('_', ' ')}", "dim"))
    ]
    if not beside:
        rows += [((f"{name:<10}", "dim"), value) for name, value in _facts_of(run, now)]
    if run.details_url:
        rows.append(_details(run.details_url))
    return [*rows, (("", "text"),), *text_rows(run.summary or "no summary")]


def _details(address: str) -> Row:
    from tui.markdown.words import Row

    return Row((("details   ", "dim"), (safe(address), "link")), (address,))


def _took(started: str | None, completed: str | None) -> str:
    """The duration of a run."""
    if not started or not completed:
        return ""
    seconds = int((datetime.fromisoformat(completed) - datetime.fromisoformat(started)).total_seconds())
    minutes, seconds = divmod(max(0, seconds), 60)
    return f", took {minutes} min {seconds} s" if minutes else f", took {seconds} s" if seconds else ""


class Workflows(Split):
    LIST = "runs"
    FACTS = True
    WAITING = "…"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo run view {run}", footer=True),
        *CHANGES,
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._runs: dict[str, Run] = {}
        self._head: SealChecks | None = None

    def facts(self) -> dict[str, str]:
        key = self.query_one("#runs", Lines).key
        return {"run": str(key[1])} if isinstance(key, tuple) else {}

    def shown(self) -> None:
        self.do_refresh()

    def moved(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        repo, seal = self.of.repo, self.of.seal
        self.svc.load(contents.runs(repo.id), self._paint_runs)
        if seal is not None:
            self.svc.load(contents.seal_checks(repo.id, seal), self._paint_head)

    def count(self) -> str | None:
        """The number of failed checks of the shown seal."""
        if self._head is None or self._head.seal_id != self.of.seal:
            return None
        return f"✗{self._head.rollup.failed}" if self._head.rollup.failed else ""

    def _paint_runs(self, runs: list[Run], at: float) -> None:
        self._runs = {run.id: run for run in runs}
        self.paint()

    def _paint_head(self, checks: SealChecks, at: float) -> None:
        self._head = checks
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        if not self.is_mounted:
            return
        rows: list[Item] = []
        head = self._head if self._head is not None and self._head.seal_id == self.of.seal else None
        if head is not None:
            sign = checks_of(head.rollup, head.items)
            title: tuple[Part, ...] = (
                (f"Checks of {safe(self.of.ref_name)} @ {head.seal_id[:8]}  ", "title"),
            )
            rows.append(Item(None, (*title, sign if sign[0] else ("no checks", "dim"))))
            for check in head.items:
                must = "  required" if check.required else ""
                summary = f"  {safe(first_words(check.summary))}" if check.summary else ""
                below = must + summary
                left = (sign_of_check(check), (f" {safe(check.name)}", "text"))
                when = self._when(check.completed_at or check.started_at or "")
                key = ("head", check.run_id) if check.run_id else None
                right = ((f"{_attempt(check.attempt)}{when} ", "dim"),)
                rows.append(Item(key, (*left, (below, "dim")), right, check.name))
        rows.append(heading("Runs", len(self._runs)))
        rows += [self._row(run) for run in self._runs.values()]
        if not self._runs:
            rows.append(Item(None, (("no runs; whoever checks records one: svc repo run create", "dim"),)))
        queued = self.svc.queued(f"/repos/{self.of.repo.id}/runs")
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in queued]
        self.query_one("#runs", Lines).show(sequence(rows))
        self.rest()

    def titled(self) -> tuple[Part, ...]:
        return ("Workflows ", "title"), (str(len(self._runs)), "dim")

    def preview_of(self, key: Hashable) -> None:
        run_id = str(key[1]) if isinstance(key, tuple) else ""
        run = self._runs.get(run_id)
        if run is not None:
            self._preview(key, run)
        else:
            self.svc.load(contents.run(self.of.repo.id, run_id), lambda run, at: self._preview(key, run))

    def _preview(self, key: Hashable, run: Run) -> None:
        now = self.svc.clock()
        rows = run_rows(run, now, self.text_rows, self.facts_shown)
        self.show_preview(key, safe(run.name), rows, fact_items(run, now))

    def _when(self, time: str) -> str:
        return (brief if self.narrow else ago)(time, self.svc.clock())

    def _row(self, run: Run) -> Item:
        left: tuple[Part, ...] = (sign_of_run(run), (f" {safe(run.name)}", "text"))
        first = first_words(run.summary or "")
        more: tuple[Part, ...] = (
            (f"  {run.seal_id[:8]}", "accent"),
            (f"  {safe(first)}" if first else "", "dim"),
        )
        when = self._when(run.completed_at or run.started_at or run.created_at)
        text = f"{run.name} {run.branch} {run.seal_id} {run.summary or ''} {run.conclusion or run.status}"
        right = ((f"{_attempt(run.attempt)}{when} ", "dim"),)
        return Item(("run", run.id), (*left, *more), right, text)

    @property
    def _run(self) -> Run | None:
        key = self.query_one("#runs", Lines).key
        run = self._runs.get(str(key[1])) if isinstance(key, tuple) else None
        if run is None:
            self.of.say("put the cursor on a run", "warn")
        return run

    def do_rerun(self) -> None:
        if (run := self._run) is not None:
            rerun(self.of, self.of.repo, run)

    def do_cancel(self) -> None:
        if (run := self._run) is not None:
            cancel(self.of, self.of.repo, run)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        key = self.listed.key
        if isinstance(key, tuple):
            run_id = str(key[1])
            self.app.push_screen(RunScreen(self.of.repo, run_id, self._runs.get(run_id)))


class RunScreen(WithFacts):
    """One run: its subject and result."""

    DEFAULT_CSS = "RunScreen #run { padding: 0 1; }"

    ACTIONS = CHANGES

    def __init__(self, repo: Repo, run_id: str, run: Run | None = None) -> None:
        super().__init__()
        self.repo, self._run_id, self._run = repo, run_id, run
        self.texts: Texts = Texts(self, self.paint)
        self._repeated = False  # whether another attempt was asked for, which is shown when it is there

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {"run": self._run_id}

    def content(self) -> ComposeResult:
        yield from beside_facts(Lines(marked=False, searches=True, linked=True, empty="…", id="run"))

    def title_parts(self) -> Sequence[Part]:
        name = safe(self._run.name) if self._run else self._run_id
        return ((f" {safe(self.repo.full_name)} run", "title"), (f"  {name}", "text"))

    def on_mount(self) -> None:
        super().on_mount()
        self.paint()
        self.do_refresh()

    def on_resize(self) -> None:
        self.paint()

    def do_refresh(self) -> None:
        self.svc.load(contents.run(self.repo.id, self._run_id), self._paint)
        if self._repeated:
            self.svc.load(contents.runs(self.repo.id), self._go_on)

    def _go_on(self, runs: list[Run], at: float) -> None:
        """Show the newest attempt."""
        old = self._run
        if old is None:
            return
        of_it = [run for run in runs if (run.name, run.seal_id) == (old.name, old.seal_id)]
        newest = max(of_it, key=lambda run: run.attempt, default=old)
        if newest.attempt > old.attempt:
            self._run_id, self._repeated = newest.id, False
            self._paint(newest, at)

    def _paint(self, run: Run, at: float) -> None:
        if run.id == self._run_id:
            self._run = run
            self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        run, now = self._run, self.svc.clock()
        if run is None:
            return
        width = self.text_width
        rows = run_rows(run, now, lambda text: self.texts.rows(text, width), self.has_facts)
        for words in self.svc.queued(f"/repos/{self.repo.id}/runs/{self._run_id}"):
            rows.append(((f"⋯ queued  {safe(words)}", "warn"),))
        self.query_one("#run", Lines).show([item(place, row) for place, row in enumerate(rows)])
        self.show_facts(fact_items(run, now))
        self.show_frame()

    def do_rerun(self) -> None:
        if self._run is not None:
            self._repeated = True
            rerun(self, self.repo, self._run)

    def do_cancel(self) -> None:
        if self._run is not None:
            cancel(self, self.repo, self._run)


def _attempt(number: int) -> str:
    return f"attempt {number}  " if number > 1 else ""
