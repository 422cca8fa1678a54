"""The screen with the changes of a proposal: its files, and the lines that differ from its base."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from localstore.core.model.history import ChangedFile, Compare
from localstore.core.model.proposal import Proposal
from localstore.core.model.repo import Repo
from localstore.core.model.thread import State, Thread
from localstore.core.words import count
from tui import contents
from tui.actions import Action
from tui.screens.base import TWO_PANES
from tui.screens.code.changed_files import CHANGES, ChangedFiles
from tui.screens.proposal.notes import Note, notes
from tui.screens.proposal.remarks import REMARKED, REMARKS, Remarking, name_lines
from tui.screens.proposal.review import VERDICTS, Reviewing
from tui.screens.proposal.seen import SeenFiles
from tui.screens.tab_keys import TAB_ACTIONS, LeadsToTabs
from tui.text import Part, safe
from tui.texts import Texts
from tui.widgets.diff import Span
from tui.widgets.lines import Lines
from tui.widgets.patch import NotedRows

THREADS = (
    Action("next_thread", ("right_square_bracket",), "next thread", footer=True),
    Action("previous_thread", ("left_square_bracket",), "previous thread"),
    Action("next_resolved", ("right_parenthesis",), "next resolved thread"),
    Action("previous_resolved", ("left_parenthesis",), "previous resolved thread"),
)

LINES_GONE = "the lines that were commented on are not among the changes"


def _spell_lines(span: Span) -> str:
    """Returns lines as the option `--line` takes them."""
    return str(span.start) if span.start == span.end else f"{span.start}-{span.end}"


class Files(ChangedFiles, Remarking, LeadsToTabs):
    """The screen with the changed files of a proposal, and with the threads about lines of these files."""

    ALL_SEEN = "all files are seen: A approves, X requests changes"
    ACTIONS: tuple[Action, ...] = (
        *CHANGES,
        *THREADS,
        *REMARKS,
        *VERDICTS,
        Action("machine", (), "this machine: models, apps", "svc llm status"),
        Action("merge", ("M",), "merge", "svc pr merge {n}", "signed_in", right="proposal.merge_prepare"),
        *TAB_ACTIONS,
    )

    def __init__(self, repo: Repo, proposal: Proposal, path: str = "", thread: str = "") -> None:
        """Makes the screen. `path`: the file whose changes are shown first, "" for the first that is not
        seen. `thread`: the id of the thread in it that the cursor goes to, "" for none."""
        super().__init__(repo, path)
        self._goal = thread  # until it is shown
        self._one = proposal
        self._texts = Texts(self, self.paint_notes)
        self._seen: SeenFiles | None = None
        self._unfolded: set[str] = set()  # ids of resolved threads that are shown as cards

    @property
    def new_seal(self) -> str:
        return self._one.head_seal

    @property
    def old_seal(self) -> str:
        return self._one.merge_base or self._one.base_seal

    @property
    def seen_paths(self) -> Collection[str]:
        return self._seen.paths if self._seen is not None else ()

    def mark_seen(self, files: Sequence[ChangedFile], seen: bool) -> None:
        if self._seen is not None:
            self._seen.mark(files, self._one.head_seal, seen=seen)
            self.svc.run_worker(self._seen.keep, thread=True, group="seen", exit_on_error=False)

    def label_of(self, action: Action) -> str:
        """Returns the label of an action in the line of keys. Actions about a line or a comment have one only
        where they can do something."""
        if action.id == "open" and self.diff.has_focus:
            thread = self.thread_here()
            is_folded = thread is not None and thread.id not in self._unfolded
            is_resolved = thread is not None and thread.state == "resolved"
            return ("unfold" if is_folded else "fold") if is_resolved else ""
        if action.id == "back" and self.diff.has_focus and self.diff.selects:
            return "select none"
        label = super().label_of(action)
        if action.id in ("next_thread", "previous_thread"):
            on_thread = self.diff.has_focus and isinstance(self.diff.key, Note)
            is_narrow = self.app.size.width < TWO_PANES
            return ("next" if on_thread and is_narrow else label) if self._threads else ""
        if action.id == "seen" and self.app.size.width < TWO_PANES:
            return "" if self.diff.has_focus and isinstance(self.diff.key, Note) else label
        return self.remark_label(action.id, label) if label and action.id in REMARKED else label

    def whole_diff(self) -> str:
        return f"svc pr diff {self._one.number}"

    def subject(self) -> tuple[Repo | None, bool]:
        return self.repo, self._one.author.handle == self.svc.client.account

    def facts(self) -> dict[str, str]:
        thread, span = self.thread_here(), self.diff.span()
        line = (
            {}
            if isinstance(span, str)
            else {"path": span.path, "line": _spell_lines(span), "side": span.side}
        )
        named = {"thread": thread.id} if thread is not None else {}
        return {"pr": str(self._one.number), "seal": self._one.head_seal, **line, **named}

    def command_of(self, action: Action) -> str:
        thread = self.thread_here()
        if action.id == "resolve" and thread is not None and thread.state != "open":
            return f"{action.command} --reopen"
        if action.id == "comment" and thread is not None:
            return "svc pr comment {n} --thread {thread} -b TEXT"
        return super().command_of(action)

    def title_parts(self) -> Sequence[Part]:
        files, seen = len(self._changes), len(self.seen_paths)
        open_threads = sum(self.open_threads().values())
        words = f"{seen}/{files} seen  " if files else ""
        talk = f"{count(open_threads, 'open thread')}  " if open_threads else ""
        pending = self.pending()
        pending_words = (
            f"{pending} pending  " if pending else "comments wait for A, X or S  " if self._keeps else ""
        )
        name = f" {safe(self.repo.full_name)} #{self._one.number} files"
        return (
            (name, "title"),
            ("  ", "text"),
            (pending_words, "warn"),
            (words, "dim"),
            (talk, "accent"),
            (safe(self._one.title), "text"),
        )

    def on_mount(self) -> None:
        super().on_mount()
        self._seen = SeenFiles(self.svc.client, self.repo.id, self._one.number)
        self.do_refresh()

    def do_merge(self) -> None:
        """Go back to the screen of the proposal, and open its merge card."""
        below = self.below
        if isinstance(below, Reviewing):
            self.app.pop_screen()
            below.do_merge()

    def do_refresh(self) -> None:
        proposal = self._one
        self._load_changes()
        self.svc.load(contents.proposal(self.repo.id, proposal.number), self._paint_one)
        self.svc.load(contents.threads(self.repo.id, proposal.number), self._paint_threads)

    def _load_changes(self) -> None:
        proposal = self._one
        self.svc.load(contents.changes(self.repo.id, proposal.base_seal, proposal.head_seal), self._paint)

    def _paint_one(self, proposal: Proposal, at: float) -> None:
        before, self._one = self._one, proposal
        if (proposal.base_seal, proposal.head_seal) != (before.base_seal, before.head_seal):
            self.forget_colours()
            self._load_changes()
            if proposal.head_seal != before.head_seal:
                self.tell_of_push()
        self.show_frame()

    def _paint(self, compare: Compare, at: float) -> None:
        self.show_changes(compare)
        self._go_to_goal()

    def _go_to_goal(self) -> None:
        """Go to the thread that the screen was opened for, once its file is shown. A resolved one is
        unfolded. If the user has moved the cursor before, do nothing."""
        if not self._goal or self._threads is None or not self.diff.files:
            return
        goal, self._goal = self._goal, ""
        if self.svc.key_at > self._opened_at:
            return
        self._unfolded.add(goal)
        self.paint_notes()
        self.show_diff()
        self._go_to_thread(goal)

    def prepare_changes(self, compare: Compare) -> None:
        if self._seen is not None:
            self._seen.compare(compare.files, self._one.head_seal)

    def _paint_threads(self, threads: list[Thread], at: float) -> None:
        before, self._threads = self.pending(), threads
        self._keeps = self.pending() > 0 or (self._keeps and not before)  # a review ends the keeping
        self.show_frame()
        self.paint_notes()
        self._paint_tree()
        self._go_to_goal()

    def paint_notes(self) -> None:
        if self._threads is None:
            return
        current = self._find_shown()
        listed = [
            thread
            for thread in self._threads
            if current is not None and thread.place is not None and thread.place.path == current.path
        ]
        before = self.diff.key
        self.diff.show_notes(
            lambda rooms: notes(
                listed, self._texts.rows, self.svc.clock(), rooms, self._unfolded, self._replaced_lines
            )
        )
        if isinstance(before, Note) and self.diff.key != before:
            self._go_to_thread(before.thread)  # its row may be gone, because the thread was folded

    def _replaced_lines(self, thread: Thread) -> Sequence[str]:
        """Returns the lines that the suggestion of a thread replaces. Returns () if they are not among the
        changes of the file on the screen."""
        at = thread.place
        is_loaded = at is not None and any(file.path == at.path for file in self.diff.files)
        if at is None or not is_loaded or thread.suggestion is None or thread.suggestion.applied_seal:
            return ()
        return self.diff.texts(at.path, thread.side, at.start, at.end)

    def show_thread(self, thread: Thread) -> None:
        self._go_to_thread(thread.id)

    def _go_to_thread(self, thread_id: str) -> bool:
        """Move the cursor to the first row of a thread. Returns False if the file on the screen does not have
        it."""
        place = next((place for place, of in self._list_places() if of == thread_id), None)
        if place is not None:
            self._show_thread(place)
        return place is not None

    def _list_places(self) -> list[tuple[int, str]]:
        """Returns (row, id of the thread) of each thread in the file on the screen, from the top."""
        rows = self.diff.rows
        noted = rows.noted if isinstance(rows, NotedRows) else []
        begins: dict[str, int] = {}
        for place in noted:
            key = rows[place].key
            if isinstance(key, Note):
                begins.setdefault(key.thread, place)
        return [(place, thread) for thread, place in begins.items()]

    def on_lines_chosen(self, event: Lines.Chosen) -> None:
        if not isinstance(event.key, Note):
            super().on_lines_chosen(event)
            return
        thread = self.thread_here()
        if thread is not None and thread.state == "resolved":
            self._unfolded.symmetric_difference_update({thread.id})
            self.paint_notes()
            self.show_keys()

    def do_next_thread(self) -> None:
        self._step_thread(1, self._stepped_state())

    def do_previous_thread(self) -> None:
        self._step_thread(-1, self._stepped_state())

    def do_next_resolved(self) -> None:
        self._step_thread(1, "resolved")

    def do_previous_resolved(self) -> None:
        self._step_thread(-1, "resolved")

    def _stepped_state(self) -> State:
        """Returns the state of the threads that `]` and `[` go to: the resolved ones if none is open."""
        return "open" if self.open_threads() else "resolved"

    def _step_thread(self, step: int, state: State) -> None:
        """Go to the next thread in this state, or with `step` −1 to the previous one. The other files follow
        the one on the screen, and the first follows the last."""
        threads = self._find_threads(state)
        if not threads:
            resolved = any(thread.state == "resolved" for thread in self._threads or ())
            none = "no thread is resolved" if state == "resolved" and not resolved else LINES_GONE
            self.tell(none if self._threads else "there are no comments on lines")
            return
        self.show_diff()
        cursor, current = self.diff.cursor, self.thread_here()
        ahead = [
            place
            for place, thread in self._list_places()
            if thread in threads and (current is None or thread != current.id) and (place - cursor) * step > 0
        ]
        if ahead:
            self._show_thread(min(ahead) if step > 0 else max(ahead))
            return
        before = self._find_shown()
        begin = self._changes.place_of.get(before.path, 0) if before is not None else 0
        files = len(self._changes)
        paths = {thread.place.path for thread in threads.values() if thread.place is not None}
        for away in range(1, files + 1):
            place = (begin + away * step) % files
            if self._changes.file(place).path not in paths:
                continue
            if away < files:
                self.show_file(place)
            rows = [row for row, thread in self._list_places() if thread in threads]
            if rows:
                self._show_thread(rows[0] if step > 0 else rows[-1])
                self._tell_of_turn(step, state, (place - begin) * step <= 0, current)
                return
        self.show_file(begin)
        self.tell(LINES_GONE)

    def _tell_of_turn(self, step: int, state: State, turned: bool, before: Thread | None) -> None:
        """Say that the first thread follows the last one, if a step went from the one to the other. `turned`:
        the step went to a file that is not ahead. `before`: the thread that the cursor was on."""
        now = self.thread_here()
        many = len(self._find_threads(state))
        if not turned or now is None:
            return
        if before is not None and now.id == before.id:
            self.tell(f"this is the only {state} thread")
        elif many > 1:
            again = " again" if before is not None else ""
            self.tell(f"the {'first' if step > 0 else 'last'} of {many} {state} threads{again}")

    def _find_threads(self, state: State) -> dict[str, Thread]:
        """Returns the threads in this state whose lines are in one of the changed files, by id."""
        return {
            thread.id: thread
            for thread in self._threads or ()
            if thread.state == state
            and thread.place is not None
            and thread.place.path in self._changes.place_of
        }

    def _show_thread(self, place: int) -> None:
        """Put the cursor on the first row of a thread, and scroll until all of it is visible."""
        self.diff.go(place)
        self.diff.show_note()

    def place_words(self) -> str:
        """Returns which lines are selected, or which thread the cursor is on, and among how many. Otherwise
        returns which hunk it is in."""
        if self.diff.selects:
            span = self.diff.span(with_text=False)
            if isinstance(span, str):
                return span
            return f"{'removed ' if span.side == 'old' else ''}{name_lines(span)} selected"
        thread = self.thread_here()
        if thread is None or thread.place is None:
            return super().place_words()
        threads = self._find_threads(thread.state)
        own = [id for _, id in self._list_places() if id in threads]
        file = self._changes.place_of.get(thread.place.path, 0)
        before = sum(
            self._changes.place_of[other.place.path] < file
            for other in threads.values()
            if other.place is not None
        )
        number = before + (own.index(thread.id) if thread.id in own else 0) + 1
        return f"{thread.state} thread {number} of {len(threads)}"

    def open_threads(self) -> Mapping[str, int]:
        """Returns the present number of open threads in each file, by path."""
        return Counter(
            thread.place.path
            for thread in self._threads or ()
            if thread.state == "open" and thread.place is not None
        )
