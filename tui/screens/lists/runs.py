"""The tab Workflows of a repository, with the checks of the shown seal and the newest runs. Also the screen
of one run."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from localstore.core.model import run as runs
from localstore.core.model.check import SealChecks
from localstore.core.model.repo import Repo
from localstore.core.model.run import Run
from localstore.core.model.run import state_of as run_state
from tui import contents
from tui.actions import Action
from tui.screens.base import Base
from tui.screens.code.clipboard import copy
from tui.screens.lists.run_glance import RunGlance
from tui.screens.lists.run_rows import attempt_words, duration, fact_items, run_rows, seconds_of
from tui.screens.proposal.words import checks_of, sign_of_check, sign_of_run
from tui.screens.split import SPLIT_ACTIONS, Split, SplitScreen
from tui.screens.tab_keys import TAB_ACTIONS, LeadsToTabs
from tui.text import Part, ago, brief, fold, safe
from tui.texts import first_words, item
from tui.widgets.lines import Item, Lines, heading, queued_rows, sequence
from tui.wording import unread_words

if TYPE_CHECKING:
    from tui.markdown.words import Row
    from tui.screens.repo_page import RepoPage

Line = tuple[Part, ...]
BLANK: Line = (("", "text"),)
ORDER = ("fail", "cancel", "pending", "pass", "skip")  # of the checks of a seal
OTHERS = 40  # runs of a check that are listed
SEAL = 12  # columns of the beginning of a seal's id, with the blanks around it
NAME = 20  # columns of the name of a check, at most

CHANGES = (
    Action("rerun", ("u",), "run again", "svc repo run rerun {run}", "signed_in", True, "run.rerun"),
    Action("cancel", ("x",), "cancel", "svc repo run cancel {run}", "signed_in", True, "run.cancel"),
    Action("copy", ("y",), "copy its address", footer=True),
)


def change_label(action: Action, run: Run | None) -> str:
    """Returns the label of an action on a run, for the line of keys. Returns "" if the action can do nothing
    to the run."""
    if action.id == "rerun":
        return action.label if run is not None and run.status == "completed" else ""
    if action.id == "cancel":
        return action.label if run is not None and run.status != "completed" else ""
    if action.id == "copy":
        return action.label if run is not None and run.details_url else ""
    return action.label


def newest_attempt(run: Run, listed: Iterable[Run]) -> Run:
    """Returns the newest attempt of a check on a seal. `run`: any attempt of this check on this seal.
    `listed`: runs of the repository."""
    attempts = [other for other in listed if (other.name, other.seal_id) == (run.name, run.seal_id)]
    return max((run, *attempts), key=lambda other: other.attempt)


def rerun(on: Base, repo: Repo, run: Run, newest: Run) -> bool:
    """Ask the server for another attempt of a completed run. `newest`: the newest attempt of its check on
    its seal. Returns False if the run is not completed, and nothing was sent."""
    if run.status != "completed":
        on.say(f"{run.name} is not completed; x cancels it", "warn")
        return False
    on.svc.outbox.act(runs.RERUN, about=repo.full_name, id=repo.id, run=run.id)
    on.say(f"asked for attempt {newest.attempt + 1} of {run.name}")
    return True


def cancel(on: Base, repo: Repo, run: Run) -> None:
    """Ask the server to cancel a run. If the run is completed already, say so."""
    if run.status == "completed":
        on.say(f"{run.name} is completed; u runs it again", "warn")
        return
    on.svc.outbox.act(runs.CANCEL, about=repo.full_name, id=repo.id, run=run.id)
    on.say(f"asked to cancel {run.name}")


def copy_address(on: Base, run: Run) -> None:
    """Put the address that a run was reported with on the terminal's clipboard, or its id if it has none."""
    text = run.details_url or run.id
    copy(on, text)


class Workflows(Split):
    OF_SEAL = True
    LIST = "runs"
    FACTS = True
    WAITING = "asking the server"
    ACTIONS = (
        Action("open", ("enter",), "open", "svc repo run view {run}", footer=True),
        *CHANGES,
        *SPLIT_ACTIONS,
    )

    def __init__(self, of: RepoPage) -> None:
        super().__init__(of)
        self._runs: dict[str, Run] = {}
        self._waiting = self.WAITING  # in place of runs, until the first answer
        self._head: SealChecks | None = None
        self._ids: dict[str, str] = {}  # check of the shown seal → its newest run
        self._first: Hashable | None = None  # the row on which the cursor began
        self._stays = False  # whether the cursor stays on its row, whatever is listed above it
        self._glance = RunGlance(self)

    def facts(self) -> dict[str, str]:
        key = self.query_one("#runs", Lines).key
        return {"run": self._run_id(key)} if isinstance(key, tuple) else {}

    def _run_id(self, key: Hashable) -> str:
        """Returns the id of the run of the row with this key. The row of a check keeps its key when the check
        runs again, and then has another run."""
        if not isinstance(key, tuple):
            return ""
        return self._ids.get(str(key[1]), "") if key[0] == "check" else str(key[1])

    def acting(self, action: str) -> None:
        if action in ("rerun", "cancel"):
            self._stays = True

    def label_of(self, action: Action) -> str:
        run = self._under_cursor
        return "" if action.id == "open" and run is None else change_label(action, run)

    def open_tab(self) -> None:
        self.do_refresh()

    def load_seal(self) -> None:
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        self._glance.forget()
        repo, seal = self.of.repo, self.of.seal
        self.svc.load(contents.runs(repo.id), self._paint_runs, self._miss_runs)
        if seal is not None:
            self.svc.load(contents.seal_checks(repo.id, seal), self._paint_head)

    def count(self) -> str | None:
        """Returns the number of failed checks of the shown seal as text. Cancelled ones are not counted.
        Returns "" if none has failed, and None while that is unknown."""
        if self._head is None or self._head.seal_id != self.of.seal:
            return None
        failed = sum(check.state == "fail" for check in self._head.items)
        return f"✗{failed}" if failed else ""

    def _paint_runs(self, runs: list[Run], at: float) -> None:
        self._runs, self._waiting = {run.id: run for run in runs}, ""
        self.renew()
        self.paint()

    def _miss_runs(self, error: BaseException) -> None:
        if self._waiting:
            self._waiting = unread_words(self.svc.news.state)
            self.paint()

    def _paint_head(self, checks: SealChecks, at: float) -> None:
        self._head = checks
        self.renew()
        self.paint()

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        if not self.is_mounted:
            return
        rows: list[Item] = []
        wide = self._name_width
        self._ids = {}
        head = self._head if self._head is not None and self._head.seal_id == self.of.seal else None
        if head is not None:
            sign = checks_of(head.rollup, head.items)
            title: tuple[Part, ...] = (
                (f"Checks of {safe(self.of.ref_name)} @ {head.seal_id[:8]}  ", "title"),
            )
            rows.append(Item(None, (*title, sign if sign[0] else ("no checks", "dim"))))
            for check in sorted(head.items, key=lambda check: (ORDER.index(check.state), check.name)):
                must = "  required" if check.required else ""
                summary = f"  {safe(first_words(check.summary))}" if check.summary else ""
                below = must + summary
                left = (sign_of_check(check), (f" {_pad_name(check.name, wide)}", "text"))
                when = self._when(check.completed_at or check.started_at or "")
                key = ("check", check.name) if check.run_id else None
                if check.run_id:
                    self._ids[check.name] = check.run_id
                attempt = attempt_words(check.attempt)
                used = 1 + sum(cell_len(text) for text, _ in left) + len(f"{attempt}{when} ")
                if used > self.list_width and check.attempt > 1:
                    attempt = f"×{check.attempt}  "
                right = ((f"{attempt}{when} ", "dim"),)
                found_by = f"{check.name} {head.seal_id} {check.summary or ''} {check.state}"
                rows.append(Item(key, (*left, (below, "dim")), right, found_by))
            rows.append(Item(None, BLANK))
        above = set(self._ids.values())  # which the checks of the seal show already
        others = [run for run in self._runs.values() if run.id not in above]
        if others or not above:
            rest = "Other runs" if above else "Runs"
            rows.append(heading(rest, None if self._waiting else len(others)))
            rows += [self._row(run, wide) for run in others]
        if self._waiting:
            rows += [Item(None, row) for row in fold([(self._waiting, "dim")], self.list_width - 2)]
        elif not self._runs:
            rows.append(Item(None, (("no runs; whoever checks records one: :repo run create", "dim"),)))
        rows += queued_rows(self.svc.outbox.describe(f"/repos/{self.of.repo.id}/runs"))
        self.listed.show(sequence(rows), self._begin_at(rows))
        self.rest()

    def _begin_at(self, rows: Sequence[Item]) -> Hashable | None:
        """Returns the key of the row to which the cursor goes: the first row, until the user has moved the
        cursor or changed a run, or the checks of the seal are listed. After that, returns None, and the
        cursor stays. This is called for each answer of the server, because checks can arrive later than the
        runs and are shown above them."""
        if self._stays or (self._first is not None and self.listed.key != self._first):
            self._stays = True
            return None
        self._first = next((row.key for row in rows if row.key is not None), None)
        self._stays = bool(self._ids)
        return self._first

    def make_title(self) -> tuple[Part, ...]:
        return ("Workflows ", "title"), ("" if self._waiting else str(len(self._runs)), "dim")

    def preview_of(self, key: Hashable) -> None:
        run_id = self._run_id(key)
        run = self._runs.get(run_id)
        if run is not None:
            self._preview(key, run)
        else:
            self.svc.load(contents.run(self.of.repo.id, run_id), lambda run, at: self._preview(key, run))

    def _preview(self, key: Hashable, run: Run) -> None:
        now, blocks = self.svc.clock(), self._glance.blocks(self.of.repo, run)
        others, width = list(self._runs.values()), self.preview_width
        rows = run_rows(run, now, self.text_rows, self.facts_shown, others, width, blocks)
        self.show_preview(key, safe(run.name), rows, fact_items(run, now))

    def _when(self, time: str) -> str:
        return (brief if self.narrow else ago)(time, self.svc.clock())

    @property
    def _name_width(self) -> int:
        """The width of the column with the names of checks, in columns of the terminal. It is at most
        NAME."""
        names = [run.name for run in self._runs.values()]
        names += [check.name for check in self._head.items] if self._head is not None else []
        return min(NAME, max((len(safe(name)) for name in names), default=0))

    def _row(self, run: Run, wide: int) -> Item:
        left: tuple[Part, ...] = (sign_of_run(run), (f" {_pad_name(run.name, wide)}", "text"))
        first = first_words(run.summary or "")
        when = self._when(run.completed_at or run.started_at or run.created_at)
        attempt = attempt_words(run.attempt)
        used = 1 + sum(cell_len(text) for text, _ in left) + len(f"{attempt}{when} ")
        if used + SEAL > self.list_width and run.attempt > 1:
            used, attempt = used - len(attempt) + len(f"×{run.attempt}  "), f"×{run.attempt}  "
        more: tuple[Part, ...] = (
            (f"  {run.seal_id[:8]}" if used + SEAL <= self.list_width else "", "accent"),
            (f"  {safe(first)}" if first else "", "dim"),
        )
        text = f"{run.name} {run.branch} {run.seal_id} {run.summary or ''} {run.conclusion or run.status}"
        right = ((f"{attempt}{when} ", "dim"),)
        return Item(("run", run.id), (*left, *more), right, text)

    @property
    def _under_cursor(self) -> Run | None:
        """The run under the cursor, None if the row under the cursor is no run."""
        return self._runs.get(self._run_id(self.listed.key))

    @property
    def _run(self) -> Run | None:
        """The run under the cursor. If there is none, a message says what to do, and the value is None."""
        run = self._under_cursor
        if run is None:
            self.of.say("put the cursor on a run", "warn")
        return run

    def do_rerun(self) -> None:
        if (run := self._run) is not None:
            rerun(self.of, self.of.repo, run, newest_attempt(run, self._runs.values()))

    def do_cancel(self) -> None:
        if (run := self._run) is not None:
            cancel(self.of, self.of.repo, run)

    def do_copy(self) -> None:
        if (run := self._run) is not None:
            copy_address(self.of, run)

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        run_id = self._run_id(self.listed.key)
        if run_id:
            self.app.push_screen(RunScreen(self.of.repo, run_id, self._runs.get(run_id)))


class RunScreen(SplitScreen, LeadsToTabs):
    """The screen of one run. It also lists the other checks of the same seal, and other runs of the same
    check. They are beside the run, or below it on a narrow screen."""

    LIST = "run"
    LINKED = True
    SHARE = 34
    FACTS = True
    WAITING = "asking the server"
    ACTIONS = (*CHANGES, *SPLIT_ACTIONS, *TAB_ACTIONS)

    def __init__(self, repo: Repo, run_id: str, run: Run | None = None) -> None:
        super().__init__()
        self.repo, self._run_id, self._run = repo, run_id, run
        self._runs: list[Run] = []  # of the repository, the newest first
        self._glance = RunGlance(self)
        self._attempts = 0  # that there were when another one was asked for, which is shown once it is there
        self._newest_of: dict[str, Run] = {}  # check of the seal → its newest run
        self._moved_to = run_id  # the run that the cursor goes to with the next rows; "" for none

    def label_of(self, action: Action) -> str:
        if action.id == "open" and (self._current is None or self._current.id == self._run_id):
            return ""  # it is open
        return change_label(action, self._current) if super().label_of(action) else ""

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, False

    def facts(self) -> dict[str, str]:
        return {"run": self._current.id if self._current is not None else self._run_id}

    def title_parts(self) -> Sequence[Part]:
        name = safe(self._run.name) if self._run else self._run_id
        return ((f" {safe(self.repo.full_name)} run", "title"), (f"  {name}", "text"))

    def make_title(self) -> tuple[Part, ...]:
        return (("Checks and runs", "title"),)

    def on_mount(self) -> None:
        super().on_mount()
        self.place_panes()
        self.paint()
        self.do_refresh()

    def do_refresh(self) -> None:
        self.renew()
        self._glance.forget()
        self.svc.load(contents.run(self.repo.id, self._run_id), self._paint)
        self.svc.load(contents.runs(self.repo.id), self._go_on)

    def _go_on(self, runs: list[Run], at: float) -> None:
        """Take over the runs that the server has returned. If the user has asked for a new attempt of the
        shown run, and the attempt is among them, show it."""
        self._runs = runs
        opened = self._run
        if self._attempts and opened is not None:
            newest = newest_attempt(opened, self._runs)
            if newest.attempt > self._attempts:
                self._attempts = 0
                current = self._current
                if not self.previews or (current is not None and current.id == opened.id):
                    self._take(newest)
                    return
                self._run, self._run_id = newest, newest.id  # the cursor has gone elsewhere, and stays there
        self.renew()
        self.paint()

    def _paint(self, run: Run, at: float) -> None:
        if run.id == self._run_id:
            self._run = run
            self.renew()
            self.paint()

    def _take(self, run: Run) -> None:
        """Show this run in place of the one that was shown."""
        self._run, self._run_id, self._moved_to = run, run.id, run.id
        self.renew()
        self.paint()
        if not self.previews:
            self.listed.go(0)

    def queue_changed(self) -> None:
        self.paint()

    def paint(self) -> None:
        run = self._run
        if run is None or not self.is_mounted:
            return
        rows: list[Item] = []
        if not self.previews:
            rows += [item(("text", place), row) for place, row in enumerate(self._rows_of(run))]
            rows.append(Item(None, BLANK))
        rows += queued_rows(self.svc.outbox.describe(f"/repos/{self.repo.id}/runs/{self._run_id}"))
        listed = self._of_seal(run)
        if listed and (self.previews or len(listed) > 1):
            rows.append(heading(f"Checks of {run.seal_id[:8]}", len(listed)))
            rows += [self._row(("check", other.name), other, safe(other.name), "") for other in listed]
            rows.append(Item(None, BLANK))
        self._newest_of = {other.name: other for other in listed}
        ids = {other.id for other in listed}
        others = [other for other in self._runs if other.name == run.name and other.id not in ids]
        if others:
            rows.append(heading(f"Other runs of {safe(run.name)}", len(others)))
            for other in others[:OTHERS]:
                more = f"  {safe(other.branch)}"
                rows.append(self._row(("run", other.id), other, other.seal_id[:8], more))
        self.listed.searches = not self.previews
        cursor: Hashable | None = None
        if self._moved_to and self.previews:
            named = next(
                (name for name, other in self._newest_of.items() if other.id == self._moved_to), None
            )
            cursor = ("check", named) if named is not None else ("run", self._moved_to)
        self._moved_to = ""
        self.listed.show(sequence(rows), cursor)
        self.show_frame()
        self.rest()

    def _of_seal(self, run: Run) -> list[Run]:
        """Returns the newest attempt of each check on the seal of `run`. Attempts that failed come first."""
        newest: dict[str, Run] = {run.name: run}
        for other in self._runs:
            if other.seal_id == run.seal_id and other.name != run.name:
                before = newest.get(other.name)
                if before is None or before.attempt < other.attempt:
                    newest[other.name] = other
        states = {name: run_state(run.status, run.conclusion) for name, run in newest.items()}
        return sorted(newest.values(), key=lambda run: (ORDER.index(states[run.name]), run.name))

    def _row(self, key: Hashable, run: Run, name: str, more: str) -> Item:
        took = duration(seconds_of(run))
        when = brief(run.completed_at or run.started_at or run.created_at, self.svc.clock())
        left: Line = (("  ", "text"), sign_of_run(run), (f" {name}", "text"), (more, "dim"))
        right = ((f"{attempt_words(run.attempt)}{took or when} ", "dim"),)
        return Item(key, left, right, f"{run.name} {run.branch} {run.seal_id}")

    def _rows_of(self, run: Run) -> list[Row | Line]:
        """Returns the rows of a run, as wide as the pane that shows it."""
        texts, width = self.texts, self.preview_width if self.previews else max(20, self.app.size.width - 3)
        if texts is None:
            return []
        now, beside = self.svc.clock(), self.facts_shown
        if not self.previews:
            return run_rows(run, now, lambda text: texts.rows(text, width), beside, self._runs)
        blocks = self._glance.blocks(self.repo, run)
        return run_rows(
            run, now, lambda text: texts.rows(text, width), beside, self._runs, width, blocks, listed=True
        )

    def preview_of(self, key: Hashable) -> None:
        run = self._current
        if run is not None:
            self.show_preview(key, safe(run.name), self._rows_of(run), fact_items(run, self.svc.clock()))

    def _again(self) -> None:
        if self.previews:
            super()._again()
        else:
            self.paint()  # colours of code in the summary have come

    @property
    def _current(self) -> Run | None:
        """The run under the cursor or, if there is none, the run that was opened. None until that is
        loaded."""
        key = self.listed.key
        if isinstance(key, tuple) and key[0] == "check" and self._run is not None:
            return self._newest_of.get(str(key[1]), self._run)
        if isinstance(key, tuple) and key[0] == "run" and self._run is not None:
            return next((run for run in (self._run, *self._runs) if run.id == key[1]), self._run)
        return self._run

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        run = self._current
        if isinstance(event.key, tuple) and event.key[0] in ("check", "run") and run is not None:
            self._take(run)

    def do_rerun(self) -> None:
        run = self._current
        if run is None:
            return
        newest = newest_attempt(run, self._runs)
        if rerun(self, self.repo, run, newest):
            self._run, self._run_id, self._attempts = run, run.id, newest.attempt

    def do_copy(self) -> None:
        run = self._current or self._run
        if run is not None:
            copy_address(self, run)

    def do_cancel(self) -> None:
        run = self._current
        if run is not None:
            cancel(self, self.repo, run)


def _pad_name(name: str, wide: int) -> str:
    """Returns the name of a check, padded to the width of its column. A longer name is not cut, and moves the
    rest of its row to the right."""
    return f"{safe(name):<{wide}}"
