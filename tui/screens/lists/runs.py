"""Checks of the head, and the runs of a repository."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from localstore.core.model.collaboration import run as runs
from localstore.core.model.collaboration.check import SealChecks
from localstore.core.model.collaboration.run import Run, state_of
from localstore.core.model.repo import Repo
from tui import contents
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.proposal.words import CHECKS, checks_of
from tui.screens.view import View
from tui.text import Part, ago, safe
from tui.texts import Texts, item
from tui.widgets.lines import Item, Lines, sequence

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo import RepoScreen

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


class Workflows(View):
    ACTIONS = (Action("open", ("enter",), "open", "svc repo run view {run}", footer=True), *CHANGES)

    def __init__(self, of: RepoScreen) -> None:
        super().__init__(of)
        self._runs: dict[str, Run] = {}
        self._head: SealChecks | None = None

    def facts(self) -> dict[str, str]:
        key = self.query_one("#runs", Lines).key
        return {"run": str(key[1])} if isinstance(key, tuple) else {}

    def compose(self) -> ComposeResult:
        yield Lines(empty="…", id="runs")

    def shown(self) -> None:
        self.do_refresh()

    def moved(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        repo, seal = self.of.repo, self.of.seal
        self.svc.load(contents.runs(repo.id), self._paint_runs)
        if seal is not None:
            self.svc.load(contents.seal_checks(repo.id, seal), self._paint_head)

    def count(self) -> str:
        """The number of failed checks of the shown seal."""
        failed = self._head.rollup.failed if self._head is not None else 0
        return f"X{failed}" if failed else ""

    def _paint_runs(self, found: list[Run], at: float) -> None:
        self._runs = {run.id: run for run in found}
        self.paint()

    def _paint_head(self, found: SealChecks, at: float) -> None:
        self._head = found
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
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
                summary = f"  {safe(check.summary)}" if check.summary else ""
                left = (CHECKS[check.state], (f" {safe(check.name)}", "text"), (must + summary, "dim"))
                when = ago(check.completed_at or check.started_at or "", self.svc.clock())
                key = ("head", check.run_id) if check.run_id else None
                rows.append(Item(key, left, ((f"{_attempt(check.attempt)}{when} ", "dim"),), check.name))
        rows.append(Item(None, (("Runs ", "title"), (str(len(self._runs)), "dim"))))
        rows += [self._row(run) for run in self._runs.values()]
        if not self._runs:
            rows.append(Item(None, (("no runs; whoever checks records one: svc repo run create", "dim"),)))
        queued = self.svc.queued(f"/repos/{self.of.repo.id}/runs")
        rows += [Item(None, ((f"⋯ queued  {safe(words)}", "warn"),)) for words in queued]
        self.query_one("#runs", Lines).show(sequence(rows))

    def _row(self, run: Run) -> Item:
        left: tuple[Part, ...] = (
            CHECKS[state_of(run.status, run.conclusion)],
            (f" {safe(run.name)}", "text"),
            (f"  {run.seal_id[:8]}", "accent"),
            (f"  {safe(run.summary)}" if run.summary else "", "dim"),
        )
        when = ago(run.completed_at or run.started_at or run.created_at, self.svc.clock())
        text = f"{run.name} {run.branch} {run.seal_id} {run.summary or ''} {run.conclusion or run.status}"
        return Item(("run", run.id), left, ((f"{_attempt(run.attempt)}{when} ", "dim"),), text)

    @property
    def _run(self) -> Run | None:
        key = self.query_one("#runs", Lines).key
        found = self._runs.get(str(key[1])) if isinstance(key, tuple) else None
        if found is None:
            self.of.say("put the cursor on a run", "warn")
        return found

    def do_rerun(self) -> None:
        if (run := self._run) is not None:
            rerun(self.of, self.of.repo, run)

    def do_cancel(self) -> None:
        if (run := self._run) is not None:
            cancel(self.of, self.of.repo, run)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if isinstance(event.key, tuple):
            run_id = str(event.key[1])
            self.app.push_screen(RunScreen(self.of.repo, run_id, self._runs.get(run_id)))


class RunScreen(Base):
    """One run: its subject and result."""

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
        yield Lines(marked=False, searches=True, linked=True, empty="…", id="run")

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

    def _go_on(self, found: list[Run], at: float) -> None:
        """Show the newest attempt."""
        old = self._run
        if old is None:
            return
        of_it = [run for run in found if (run.name, run.seal_id) == (old.name, old.seal_id)]
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
        facts = [
            ("seal      ", run.seal_id[:12]),
            ("branch    ", run.branch),
            ("attempt   ", str(run.attempt)),
            ("reported  ", f"@{run.reported_by.handle or '?'} {ago(run.created_at, now)}"),
            ("started   ", ago(run.started_at or "", now)),
            ("completed ", ago(run.completed_at or "", now)),
            ("details   ", run.details_url or ""),
        ]
        rows: list[Row | tuple[Part, ...]] = [
            (CHECKS[state_of(run.status, run.conclusion)], (f"  {run.conclusion or run.status}", "dim"))
        ]
        rows += [((name, "dim"), (safe(value), "text")) for name, value in facts if value]
        width = max(20, self.size.width - 3)
        rows += [(("", "text"),), *self.texts.rows(run.summary or "no summary", width)]
        for words in self.svc.queued(f"/repos/{self.repo.id}/runs/{self._run_id}"):
            rows.append(((f"⋯ queued  {safe(words)}", "warn"),))
        self.query_one("#run", Lines).show([item(place, row) for place, row in enumerate(rows)])
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
